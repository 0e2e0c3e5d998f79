import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Request } from 'express';
import type { Credential } from '../../auth/access/credential';
import { forbidden } from '../../auth/access/errors';
import { canEdit } from '../../games/visibility';
import { EntityManager } from 'typeorm';
import { ApiPaths } from './api-paths';
import { LiveQuirks } from './quirks.service';

/** Routes that download a file: the table of what they identify, and the parameter with its ID. */
const DOWNLOADS: Readonly<Record<string, readonly ['uploads' | 'builds', string]>> = {
  '/uploads/{upload_id}/download': ['uploads', 'upload_id'],
  '/builds/{build_id}/download/{file_type}/{sub_type}': ['builds', 'build_id'],
  '/api/1/{KEY}/upload/{upload_id}/download': ['uploads', 'upload_id'],
};

/** Imitates the live site, where only editors can download a paid file without the ID of a download key. */
@Injectable()
export class DownloadKeyInterceptor implements NestInterceptor {
  constructor(
    private readonly quirks: LiveQuirks,
    private readonly paths: ApiPaths,
    private readonly db: EntityManager,
  ) {}

  async intercept(context: ExecutionContext, next: CallHandler) {
    const req = context.switchToHttp().getRequest<Request>();
    if (this.quirks.get().download_key_required) await this.requireKey(req);
    return next.handle();
  }

  private async requireKey(req: Request): Promise<void> {
    const [table, parameter] = DOWNLOADS[this.paths.find(req.path) ?? ''] ?? [];
    const credential = req.user as Credential | undefined;
    if (table === undefined || !credential || hasDownloadKey(req)) return;
    if (await this.isPaid(table, String(req.params[parameter!]), credential.user_id))
      throw forbidden('you must buy this game to download');
  }

  private async isPaid(table: 'uploads' | 'builds', id: string, user_id: number): Promise<boolean> {
    if (!/^\d{1,15}$/.test(id)) return false;
    const file =
      table === 'uploads'
        ? 'uploads f'
        : `(SELECT b.id, b.game_id, coalesce(u.traits, '{}') AS traits FROM builds b
            LEFT JOIN uploads u ON u.game_id = b.game_id AND u.channel_name = b.channel_name) f`;
    const found = await this.db.query<unknown[]>(
      `SELECT FROM ${file} JOIN games g ON g.id = f.game_id
       WHERE f.id = $1 AND g.min_price > 0 AND NOT 'demo' = ANY (f.traits) AND NOT ${canEdit('g', '$2')}`,
      [id, user_id],
    );
    return found.length > 0;
  }
}

const hasDownloadKey = (req: Request) =>
  [req.query, req.body as object | undefined].some((values) => values && 'download_key_id' in values);
