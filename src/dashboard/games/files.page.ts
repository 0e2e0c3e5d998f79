import { Injectable } from '@nestjs/common';
import { SCOPES } from '../../auth/access/scopes';
import { formatSize } from '../../platform/formats/sizes';
import { withQuery } from '../../platform/input/form';
import { ServiceUrl } from '../../platform/server/service-url';
import type { PendingUpload } from '../../uploads/file-uploads.service';
import type { UploadRow } from '../../uploads/upload.row';
import { Assets } from '../layout/assets';
import { changeForm, hasProblems } from '../layout/fields';
import { html, type Html, type Part } from '../layout/html';
import { formToken, GAMES_PATH, type Page, gamePath } from '../layout/layout';
import {
  actions,
  type Columns,
  confirmation,
  copyable,
  day,
  done,
  descriptionList,
  linkButton,
  muted,
  number,
  table,
  tableOr,
  tag,
  unlabeled,
} from '../layout/components';
import { listPlatforms } from '../layout/platforms';
import type { SignedInVisitor } from '../layout/visitor';
import { GameFrame } from './game-frame';
import type { OwnGame } from '../../games/editing/own-games.service';
import {
  type FileProblems,
  flagBoxes,
  nameField,
  platformBoxes,
  UploadForm,
  uploadPath,
} from './upload-form';

const filePath = (game_id: number, upload_id: number, action = '') =>
  `${gamePath(game_id, 'files')}/${upload_id}${action && `/${action}`}`;

/** The pages of a game's files. */
@Injectable()
export class FilesPage {
  constructor(
    private readonly frame: GameFrame,
    private readonly form: UploadForm,
    private readonly assets: Assets,
    private readonly service: ServiceUrl,
  ) {}

  list(visitor: SignedInVisitor, game: OwnGame, uploads: UploadRow[], pending: PendingUpload[]): Page {
    return this.frame.page(
      game,
      'files',
      (notice) =>
        html`${done(notice.message)}
          ${this.form.show(
            visitor,
            game,
            pending.filter(({ replaces }) => replaces === null),
          )}
          ${this.pending(visitor, game, pending)}
          <section class="stack" aria-labelledby="listed">
            <h2 id="listed">Files for players</h2>
            ${tableOr('There are no files yet.', 'Files, in the order in which players see them', uploadColumns(visitor, game, uploads), uploads)}
          </section>
          ${this.commands(game)}`,
      this.withScript,
    );
  }

  one(
    visitor: SignedInVisitor,
    game: OwnGame,
    upload: UploadRow,
    pending: PendingUpload[],
    problems: FileProblems = {},
  ): Page {
    const { id, filename, channel_name, build, external_url, size } = upload;
    return this.frame.page(
      game,
      'files',
      (notice) =>
        html`${done(notice.message)}
          <h2>${upload.display_name ?? filename}</h2>
          ${descriptionList({
            'File name': filename,
            Size: size === null ? false : formatSize(size),
            Channel: channel_name !== null && channelLink(game.id, channel_name),
            'Newest build': channel_name !== null && buildCell(upload),
            Link: external_url ?? false,
            Updated: day(build?.created_at ?? upload.updated_at),
          })}
          ${changeForm(
            visitor,
            { action: filePath(game.id, id), button: 'Save', back: gamePath(game.id, 'files') },
            html`${nameField(upload.display_name, filename, problems)} ${platformBoxes(upload.traits)}
            ${flagBoxes(upload)}`,
          )}
          ${this.form.show(
            visitor,
            game,
            pending.filter(({ replaces }) => replaces === id),
            upload,
          )}
          <p>
            <a class="button quiet danger" href="${filePath(game.id, id, 'delete')}">Delete this file</a>
          </p>`,
      {
        ...this.withScript,
        title: `${upload.display_name ?? filename}`,
        status: hasProblems(problems) ? 400 : 200,
      },
    );
  }

  deletion(visitor: SignedInVisitor, { id, game_id, filename, display_name, channel_name }: UploadRow): Page {
    return confirmation(visitor, {
      section: GAMES_PATH,
      title: 'Delete a file',
      question: `Delete ${display_name ?? filename}?`,
      details: html`<p>
        ${
          channel_name === null
            ? 'Players can no longer download it, also those who bought the game. This can’t be undone.'
            : `Players can no longer download the channel ${channel_name}. Its builds are kept, and the next push lists it again.`
        }
      </p>`,
      action: filePath(game_id, id, 'delete'),
      button: 'Delete the file',
      back: gamePath(game_id, 'files'),
    });
  }

  private get withScript(): Partial<Page> {
    return { scripts: [this.assets.filesScript], sendsRequests: true };
  }

  private pending(visitor: SignedInVisitor, { id: game_id }: OwnGame, pending: PendingUpload[]): Html {
    if (pending.length === 0) return html``;
    const columns: Columns<PendingUpload> = {
      File: ({ filename }) => filename,
      Received: unlabeled(({ received, size }) => `${formatSize(received)} of ${formatSize(size)}`),
      State: unlabeled((upload) => uploadState(upload)),
      Actions: actions(
        ({ id, filename, state, received, size }) =>
          html`${
            received === size &&
            state !== 'storing' &&
            postButton(visitor, uploadPath(game_id, id, 'complete'), 'Finish', filename)
          }
          ${state !== 'storing' && postButton(visitor, uploadPath(game_id, id, 'discard'), 'Discard', filename, 'quiet danger')}`,
      ),
    };
    return html`<section class="stack" aria-labelledby="unfinished">
      <h2 id="unfinished">Unfinished uploads</h2>
      ${table('Unfinished uploads', columns, pending)}
    </section>`;
  }

  /** Tells a seller how to upload with a program. */
  private commands({ owner_name, slug }: OwnGame): Html {
    const target = `${owner_name}/${slug}`;
    const push = ['windows', 'linux', 'osx'].map(
      (channel) => `butler push FOLDER ${target}:${channel} --userversion 1.0.0`,
    );
    return html`<section class="card stack" aria-labelledby="commands">
      <h2 id="commands">Upload with butler</h2>
      <p>
        butler sends only what changed since the last build, and players’ launchers download only the changes.
        Create an <a href="/user/settings/api-keys/new">API key</a> with the permission
        “${SCOPES['game:edit:builds']}”, and replace FOLDER with the folder of your build.
      </p>
      ${copyable('butler-login', 'Where and as whom, once per terminal', `export BUTLER_API_KEY=YOUR_KEY\nalias butler='butler --address ${butlerAddress(this.service.url)}'`)}
      ${copyable('butler-push', 'A build for each platform', push.join('\n'))}
    </section>`;
  }
}

/** The URL for butler, which itself puts `api.` in front of a host name. */
const butlerAddress = (url: string): string => url.replace('://api.', '://');

const buildCell = ({ build }: UploadRow): Part =>
  build === null
    ? muted('None yet')
    : html`${build.user_version ?? `Build ${build.version}`}, ${day(build.created_at)}`;

/** A link to the builds of a channel, with their states and errors. */
const channelLink = (game_id: number, channel: string): Html =>
  html`<a href="${withQuery(gamePath(game_id, 'builds'), { channel })}">${channel}</a>`;

const urlHost = (url: string): string => (URL.canParse(url) ? new URL(url).host : url);

const uploadState = ({ state, error, received, size }: PendingUpload): Part => {
  if (state === 'storing') return 'Being stored. Reload this page to see whether it is done.';
  if (state === 'failed') return error;
  return received === size ? 'Complete. Finish it, to list it.' : 'To continue, choose the same file again.';
};

const postButton = (
  visitor: SignedInVisitor,
  action: string,
  words: string,
  about: string,
  style = 'quiet',
): Html =>
  html`<form method="post" action="${action}">
    ${formToken(visitor)}<button class="${style}">${words}<span class="hidden"> ${about}</span></button>
  </form> `;

const uploadColumns = (
  visitor: SignedInVisitor,
  { id: game_id }: OwnGame,
  uploads: UploadRow[],
): Columns<UploadRow> => {
  const moveButton = ({ id, filename }: UploadRow, direction: 'up' | 'down') =>
    html`<form method="post" action="${filePath(game_id, id, 'move')}">
      ${formToken(visitor)}<button class="quiet" name="direction" value="${direction}">
        <span aria-hidden="true">${direction === 'up' ? '↑' : '↓'}</span
        ><span class="hidden">Move ${filename} ${direction}</span>
      </button>
    </form> `;
  return {
    File: ({ id, filename, display_name, traits, hidden }) =>
      html`<a id="file-${id}" href="${filePath(game_id, id)}">${display_name ?? filename}</a>
        ${traits.includes('demo') && tag('Demo')} ${hidden && tag('Hidden')}
        ${display_name !== null && html`<br /><small>${filename}</small>`}`,
    Platforms: unlabeled(({ traits }) => listPlatforms(traits)),
    Source: unlabeled((upload) =>
      upload.channel_name === null
        ? upload.external_url === null
          ? muted('File')
          : html`Link to ${urlHost(upload.external_url)}`
        : html`Channel ${channelLink(game_id, upload.channel_name)} <small>${buildCell(upload)}</small>`,
    ),
    Size: unlabeled(number(({ size }) => (size === null ? muted('–') : formatSize(size)))),
    Actions: actions(
      (upload) =>
        html`${upload !== uploads[0] && moveButton(upload, 'up')}
        ${upload !== uploads.at(-1) && moveButton(upload, 'down')}
        ${linkButton(filePath(game_id, upload.id), 'Edit', upload.filename)}`,
    ),
  };
};
