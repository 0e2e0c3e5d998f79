import { Injectable } from '@nestjs/common';
import { Settings } from '../../platform/config/settings';
import { formatSize } from '../../platform/formats/sizes';
import type { PendingUpload } from '../../uploads/file-uploads.service';
import { FileStorage } from '../../uploads/storage/file-storage';
import { NoStorage } from '../../uploads/storage/no-storage';
import { MAX_DISPLAY_NAME } from '../../uploads/upload.entity';
import type { UploadRow } from '../../uploads/upload.row';
import { alert } from '../layout/components';
import { checkbox, choices, field, type Problems } from '../layout/fields';
import { html, type Html } from '../layout/html';
import { formToken, gamePath } from '../layout/layout';
import { PLATFORM_NAMES } from '../layout/platforms';
import type { SignedInVisitor } from '../layout/visitor';
import type { OwnGame } from '../../games/editing/own-games.service';

export const uploadPath = (game_id: number, id = '', action = '') =>
  [gamePath(game_id, 'files'), 'uploads', id, action].filter(Boolean).join('/');

export type FileProblems = Problems<'display_name'>;

/** The form that uploads a file, with the script that sends it in parts. */
@Injectable()
export class UploadForm {
  constructor(
    private readonly settings: Settings,
    private readonly storage: FileStorage,
  ) {}

  /** `replaced`: the upload that gets the file. */
  show(visitor: SignedInVisitor, game: OwnGame, pending: PendingUpload[], replaced?: UploadRow): Html {
    if (this.storage instanceof NoStorage)
      return html`<p class="empty">This store has no storage for files yet.</p>`;
    return html`<section class="card stack" aria-labelledby="upload-heading">
      <h2 id="upload-heading">${heading(replaced)}</h2>
      <noscript>
        ${alert('Uploading in the browser needs JavaScript. Without it, use the commands below.')}
      </noscript>
      <form
        class="stack upload"
        data-start="${uploadPath(game.id)}"
        data-files="${gamePath(game.id, 'files')}"
        data-max-bytes="${this.settings.FILES_MAX_BYTES}"
        hidden
      >
        ${formToken(visitor)}
        ${replaced && html`<input type="hidden" name="replaces" value="${replaced.id}" />`}
        <div class="field drop">
          <label for="file">File</label>
          <input id="file" type="file" required aria-describedby="file-help" />
          <small id="file-help"
            >Drop it here, or choose it: up to ${formatSize(this.settings.FILES_MAX_BYTES)}. If the connection
            is lost, the upload continues where it stopped.</small
          >
        </div>
        ${replaced ? replaced.channel_name !== null && versionField : newFileFields}
        <div class="buttons">
          <button>Upload</button>
          <button type="button" class="quiet" data-cancel hidden>Cancel</button>
        </div>
        <div class="stack" data-progress hidden>
          <progress max="1" value="0" aria-label="Progress of the upload"></progress>
          <p role="status" data-status></p>
        </div>
        <p class="alert" role="alert" data-problem hidden></p>
        ${pending.filter(({ state }) => state !== 'storing').map(unfinishedField)}
      </form>
    </section>`;
  }
}

function heading(replaced?: UploadRow): string {
  if (!replaced) return 'Upload a file';
  return replaced.channel_name === null ? 'Replace the file' : 'Upload a new build';
}

/** The browser continues this upload if the same file is chosen again. */
const unfinishedField = ({ id, filename, size }: PendingUpload): Html =>
  html`<input type="hidden" data-unfinished="${id}" data-filename="${filename}" data-size="${size}" />`;

const versionField = field({
  id: 'user_version',
  label: html`Version <small>optional, such as 1.2.0</small>`,
  maxlength: 200,
});

export const nameField = (
  value: string | null,
  placeholder: string,
  { display_name: problem }: FileProblems,
): Html =>
  field({
    id: 'display_name',
    label: html`Name to show <small>optional, in place of the file name</small>`,
    value: value ?? '',
    maxlength: MAX_DISPLAY_NAME,
    placeholder,
    problem,
  });

export const platformBoxes = (chosen: readonly string[]): Html =>
  choices(
    'platforms',
    'Platforms',
    undefined,
    Object.entries(PLATFORM_NAMES).map(([trait, name]) =>
      checkbox(trait, chosen.includes(trait), html`${name}`),
    ),
    'inline',
  );

export const flagBoxes = ({ traits, hidden }: Pick<UploadRow, 'traits' | 'hidden'>): Html =>
  html`${checkbox('demo', traits.includes('demo'), html`Demo<br /><small>Everyone can download it.</small>`)}
  ${checkbox('hidden', hidden, html`Hidden<br /><small>Only editors of the game see it.</small>`)}`;

const newFileFields = html`${platformBoxes([])} ${nameField(null, '', {})}
  ${flagBoxes({ traits: [], hidden: false })}
  <details>
    <summary>As a build of a channel</summary>
    <div class="stack">
      <p class="muted">
        Players of a channel always download its newest build. Choose the same channel for the next version.
      </p>
      ${field({ id: 'channel_name', label: html`Channel <small>such as windows</small>`, maxlength: 200, autocapitalize: 'none', spellcheck: 'false' })}
      ${versionField}
    </div>
  </details>`;
