import { Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import { ApiExcludeEndpoint, ApiOkResponse, ApiOperation, ApiParam, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Public } from '../../auth/access/access';
import { authenticationRequired } from '../../auth/access/errors';
import { gameWithUserResponse } from '../../games/embedded-game.dto';
import { Clock } from '../../platform/config/clock';
import { Settings } from '../../platform/config/settings';
import { StoreLinks } from '../../platform/config/store-links';
import { apiError } from '../../platform/errors/api-error';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { Form } from '../../platform/input/form';
import { RateLimitsService } from '../../platform/limits/rate-limits.service';
import { keyPath } from '../../platform/server/key-pages';
import { Fails } from '../../platform/server/routes';
import { type KeyPageRow, LibraryService } from '../../purchases/library/library.service';
import { DownloadsService } from '../../uploads/downloads.service';
import { uploadResponse } from '../../uploads/upload.dto';
import { UploadsService } from '../../uploads/uploads.service';
import { type FormResult, seeOther } from '../layout/layout';
import { FormFields, PagesInDescription, PathId, SecretPath } from '../layout/page';
import { SignInRequired, wantsPage } from '../layout/page.guard';
import { CurrentVisitor, isSignedIn, type Visitor } from '../layout/visitor';
import { LIBRARY_PATH } from '../library/library.page';
import { RedemptionService } from '../library/redemption.service';
import { visitorsPlatform } from '../layout/platforms';
import { tooManyAttempts } from '../sign-in/sign-in.page';
import { KeyPageResponse } from './key-page.dto';
import { KeyPageView } from './key-page.page';
import { DAY_MS } from '../../platform/formats/durations';

/**
 * The page of a download key, for anyone with its link. A GET changes and counts nothing, because chat apps
 * preview links.
 */
@ApiTags('Ownership')
@PagesInDescription()
@SecretPath()
@Controller('download/:key')
export class KeyPageController {
  constructor(
    private readonly library: LibraryService,
    private readonly uploads: UploadsService,
    private readonly downloads: DownloadsService,
    private readonly redemption: RedemptionService,
    private readonly limits: RateLimitsService,
    private readonly links: StoreLinks,
    private readonly settings: Settings,
    private readonly clock: Clock,
    private readonly view: KeyPageView,
  ) {}

  @Get()
  @ApiOperation({
    summary: 'Get the game of a download key',
    description:
      "The last part of a buyer's download URL is the key. Browsers get a page. Needs no credential. A key that belongs to an account opens only for a browser with a session of the account, unless the store sets `KEY_PAGES` to `all`.",
  })
  @ApiParam({ name: 'key', description: 'The download key', schema: { type: 'string' } })
  @Public()
  @ApiOkResponse({ type: KeyPageResponse })
  @Fails(401, 'authentication required')
  @Fails(404, 'invalid download key')
  async show(
    @Param('key') key: string,
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @CurrentVisitor() visitor: Visitor,
  ) {
    res.setHeader('Vary', 'Accept, Cookie');
    const row = await this.open(key, req, res, visitor);
    const uploads = await this.uploads.ofKey(key);
    if (wantsPage(req)) return this.page(key, row, visitor, req, uploads);
    const response: KeyPageResponse = {
      download_key: {
        id: row.key_id,
        game_id: row.id,
        created_at: modernTimestamp(row.key_created_at),
        claimed: row.key_owner_id !== null,
      },
      game: gameWithUserResponse(row, this.links),
      uploads: uploads.map(uploadResponse),
    };
    return this.view.json(response);
  }

  @Post('files/:upload_id')
  @ApiExcludeEndpoint()
  @Public()
  async download(
    @Param('key') key: string,
    @PathId('upload_id') upload_id: number,
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @CurrentVisitor() visitor: Visitor,
  ) {
    const { key_id: id } = await this.open(key, req, res, visitor);
    const day = Math.floor(this.clock.now() / DAY_MS);
    return seeOther(
      await this.downloads.withKey({ id, key }, upload_id, visitor.createSignature(`download ${day}`)),
    );
  }

  @Post('claim')
  @ApiExcludeEndpoint()
  @Public()
  async claim(
    @Param('key') key: string,
    @FormFields() form: Form,
    @Req() req: Request,
    @Res({ passthrough: true }) res: Response,
    @CurrentVisitor() visitor: Visitor,
  ) {
    const row = await this.open(key, req, res, visitor);
    if (!isSignedIn(visitor)) throw new SignInRequired(keyPath(key));
    const user_id = visitor.user.id;
    const isNew = row.key_owner_id !== user_id;
    if (isNew && !form.isChecked('again') && (await this.library.owns(user_id, row.id)))
      return this.view.claimAgain(visitor, key, row);
    const showForm = async (result: FormResult) =>
      this.page(key, row, visitor, req, await this.uploads.ofKey(key), result);
    const { found, seconds } = await this.redemption.redeem(visitor, key, { allowOwned: true });
    if (seconds !== undefined) return showForm(tooManyAttempts(seconds));
    if (!found) {
      if (!(await this.library.keyPage(key))) throw invalidKey();
      return showForm({ status: 409, problem: 'Another account already has this key.' });
    }
    const verb = found.result === 'claimed' ? 'is now' : 'was already';
    return seeOther(LIBRARY_PATH, { message: `${found.title} ${verb} in your library.` });
  }

  /** The key, if its page opens for the visitor. A key of another account is the same 404 as an unknown one. */
  private async open(key: string, req: Request, res: Response, visitor: Visitor): Promise<KeyPageRow> {
    const row = await this.limits.lookUp(req, res, async () => {
      const found = await this.library.keyPage(key);
      return found && this.isHidden(found, visitor) ? undefined : found;
    });
    if (!row) throw invalidKey();
    if (this.settings.KEY_PAGES === 'all' || row.key_owner_id === null || visitor.user) return row;
    if (!wantsPage(req)) throw authenticationRequired();
    throw new SignInRequired(keyPath(key));
  }

  private isHidden({ key_owner_id }: KeyPageRow, { user }: Visitor): boolean {
    return (
      this.settings.KEY_PAGES !== 'all' &&
      key_owner_id !== null &&
      user !== undefined &&
      user.id !== key_owner_id
    );
  }

  private async page(
    key: string,
    row: KeyPageRow,
    visitor: Visitor,
    req: Request,
    uploads: Awaited<ReturnType<UploadsService['ofKey']>>,
    result: FormResult = {},
  ) {
    const others = await this.library.soldWithKey(key);
    const platform = visitorsPlatform(req.headers['user-agent']);
    return this.view.show({ key, row, visitor, uploads, others, platform, result });
  }
}

const invalidKey = () => apiError(404, 'invalid download key');
