import { Controller, Get, Headers, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access/access';
import { apiError } from '../../platform/errors/api-error';
import { Form } from '../../platform/input/form';
import { LibraryService } from '../../purchases/library/library.service';
import { DownloadsService } from '../../uploads/downloads.service';
import { UploadsService } from '../../uploads/uploads.service';
import { type FormResult, seeOther } from '../layout/layout';
import { FormFields, PageQuery, Pages, PathId } from '../layout/page';
import { parsePage } from '../layout/components';
import { visitorsPlatform } from '../layout/platforms';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { tooManyAttempts } from '../sign-in/sign-in.page';
import { LIBRARY_PATH, LibraryPage, MAX_KEY, MAX_SEARCH } from './library.page';
import { RedemptionService } from './redemption.service';

@Pages()
@SignedIn()
@Controller('user/games')
export class LibraryController {
  constructor(
    private readonly library: LibraryService,
    private readonly uploads: UploadsService,
    private readonly downloads: DownloadsService,
    private readonly redemption: RedemptionService,
    private readonly page: LibraryPage,
  ) {}

  @Get()
  async list(
    @PageQuery() query: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
    @Headers('user-agent') userAgent?: string,
  ) {
    const filter = {
      ...readFilter(query),
      sort: query.text('sort') === 'title' ? 'title' : 'recent',
    } as const;
    const user_id = visitor.user.id;
    const rows = await this.library.page(user_id, filter);
    const files = await this.uploads.ofGames(
      rows.flatMap(({ game_id }) => game_id ?? []),
      { user_id },
    );
    return this.page.list(rows, files, { ...filter, platform: visitorsPlatform(userAgent) });
  }

  @Get('bundles/:bundle_id')
  async bundle(
    @PathId('bundle_id') bundle_id: number,
    @PageQuery() query: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
    @Headers('user-agent') userAgent?: string,
  ) {
    const filter = readFilter(query);
    const user_id = visitor.user.id;
    const bundle = await this.library.bundle(user_id, bundle_id, filter);
    if (!bundle) throw apiError(404, 'You don’t own this bundle, or it doesn’t exist.');
    const files = await this.uploads.ofGames(
      bundle.games.map(({ game_id }) => game_id),
      { user_id },
    );
    const platform = visitorsPlatform(userAgent);
    return this.page.bundle({ id: bundle_id, ...bundle }, files, { ...filter, platform });
  }

  @Get('downloads/:upload_id')
  async download(
    @PathId('upload_id') upload_id: number,
    @Req() req: Request,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    return seeOther(await this.downloads.upload({ upload_id }, { user_id: visitor.user.id }, req));
  }

  @Get('redeem')
  newForm(@CurrentVisitor() visitor: SignedInVisitor) {
    return this.page.redeem(visitor);
  }

  @Post('redeem')
  async redeem(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const key = keyIn(form.text('key') ?? '');
    const showForm = (result: FormResult) => this.page.redeem(visitor, key, result);
    if (key === '' || key.length > MAX_KEY)
      return showForm({ status: 400, problem: 'Enter the download key.' });
    const { found, seconds } = await this.redemption.redeem(visitor, key, {
      allowOwned: form.isChecked('again'),
    });
    if (seconds !== undefined) return showForm(tooManyAttempts(seconds));
    if (!found)
      return showForm({ status: 404, problem: 'This key isn’t valid, or another account already has it.' });
    if (found.result === 'owned') return this.page.redeemAgain(visitor, key, found.title);
    const verb = found.result === 'claimed' ? 'is now' : 'was already';
    return seeOther(LIBRARY_PATH, { message: `${found.title} ${verb} in your games.` });
  }
}

const readFilter = (query: Form) => ({
  page: parsePage(query.text('page')),
  search: (query.text('search') ?? '').trim().slice(0, MAX_SEARCH),
});

// A link may have a query that a messenger added.
const LINK = /^https?:\/\/\S*\/([^/?#\s]+)\/?(?:[?#]\S*)?$/;

/** The key in the entered text: a download page's URL ends with it. */
export function keyIn(text: string): string {
  const [, last] = LINK.exec(text.trim()) ?? [];
  if (last === undefined) return text.trim();
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}
