import { Controller, Get, Param, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access/access';
import { Settings } from '../../platform/config/settings';
import { ApiError, badRequest } from '../../platform/errors/api-error';
import { Form } from '../../platform/input/form';
import { FileUploadsService, invalidUploadSession } from '../../uploads/file-uploads.service';
import { UploadEditsService } from '../../uploads/upload-edits.service';
import { hasProblems } from '../layout/fields';
import { JsonResponse } from '../layout/json-response';
import { seeOther, gamePath } from '../layout/layout';
import { FormFields, Pages, PathId } from '../layout/page';
import { wantsPage } from '../layout/page.guard';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { fileDraft, newFileIn } from './file-draft';
import { FilesPage } from './files.page';
import { OwnGamesService } from '../../games/editing/own-games.service';

/** The files of a game, for users who can edit it. */
@Pages()
@SignedIn()
@Controller('user/settings/games/:game_id/files')
export class GameFilesController {
  constructor(
    private readonly games: OwnGamesService,
    private readonly uploads: UploadEditsService,
    private readonly fileUploads: FileUploadsService,
    private readonly page: FilesPage,
    private readonly settings: Settings,
  ) {}

  @Get()
  async list(@PathId('game_id') game_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const user_id = visitor.user.id;
    const game = await this.games.one(game_id, user_id);
    const [uploads, pending] = await Promise.all([
      this.uploads.list(game_id, user_id),
      this.fileUploads.pending(game_id, user_id),
    ]);
    return this.page.list(visitor, game, uploads, pending);
  }

  /** The routes of a file that is being uploaded are for the script of the page. */
  @Post('uploads')
  async start(
    @PathId('game_id') game_id: number,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const file = newFileIn(form, game_id, this.settings.FILES_MAX_BYTES);
    try {
      return new JsonResponse(await this.fileUploads.start(file, visitor.by));
    } catch (error) {
      const text = error instanceof ApiError ? SENTENCES[error.errors[0]!] : undefined;
      throw text === undefined ? error : badRequest(text);
    }
  }

  @Get('uploads/:id')
  async status(
    @PathId('game_id') game_id: number,
    @Param('id') id: string,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const status = await this.fileUploads.status(game_id, parseUuid(id), visitor.user.id);
    return new JsonResponse({ ...status, path: this.fileUploads.sessionPath(id) });
  }

  @Post('uploads/:id/complete')
  async complete(
    @PathId('game_id') game_id: number,
    @Param('id') id: string,
    @Req() req: Request,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const status = await this.fileUploads.complete(game_id, parseUuid(id), visitor.by);
    if (!wantsPage(req)) return new JsonResponse(status);
    return seeOther(gamePath(game_id, 'files'), { message: `${status.filename} is being stored.` });
  }

  @Post('uploads/:id/discard')
  async discard(
    @PathId('game_id') game_id: number,
    @Param('id') id: string,
    @Req() req: Request,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    await this.fileUploads.discard(game_id, parseUuid(id), visitor.by);
    return wantsPage(req)
      ? seeOther(gamePath(game_id, 'files'), { message: 'The unfinished upload was discarded.' })
      : new JsonResponse({ success: true });
  }

  @Get(':upload_id')
  async one(
    @PathId('game_id') game_id: number,
    @PathId('upload_id') upload_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const game = await this.games.one(game_id, visitor.user.id);
    const upload = await this.uploads.one(game_id, upload_id, visitor.user.id);
    const pending = await this.fileUploads.pending(game_id, visitor.user.id);
    return this.page.one(visitor, game, upload, pending);
  }

  @Post(':upload_id')
  async update(
    @PathId('game_id') game_id: number,
    @PathId('upload_id') upload_id: number,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const { problems, ...change } = fileDraft(form);
    if (hasProblems(problems)) {
      const game = await this.games.one(game_id, visitor.user.id);
      const upload = await this.uploads.one(game_id, upload_id, visitor.user.id);
      return this.page.one(visitor, game, { ...upload, ...change }, [], problems);
    }
    await this.uploads.update(game_id, upload_id, change, visitor.by);
    return seeOther(gamePath(game_id, 'files'), { message: 'Your changes were saved.' });
  }

  @Post(':upload_id/move')
  async move(
    @PathId('game_id') game_id: number,
    @PathId('upload_id') upload_id: number,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    await this.uploads.move(game_id, upload_id, form.text('direction') === 'up' ? -1 : 1, visitor.by);
    return seeOther(`${gamePath(game_id, 'files')}#file-${upload_id}`);
  }

  @Get(':upload_id/delete')
  async confirmDeletion(
    @PathId('game_id') game_id: number,
    @PathId('upload_id') upload_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const upload = await this.uploads.one(game_id, upload_id, visitor.user.id);
    return this.page.deletion(visitor, upload);
  }

  @Post(':upload_id/delete')
  async delete(
    @PathId('game_id') game_id: number,
    @PathId('upload_id') upload_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    await this.uploads.delete(game_id, upload_id, visitor.by);
    return seeOther(gamePath(game_id, 'files'), { message: 'The file was deleted.' });
  }
}

const SENTENCES: Record<string, string> = {
  'the files of the owner exceed the quota':
    'There is no space left for this file. Delete files that you no longer need, or ask the store for more space.',
  'too many unfinished uploads': 'There are too many unfinished uploads. Finish or discard some of them.',
};

function parseUuid(text: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)) throw invalidUploadSession();
  return text;
}
