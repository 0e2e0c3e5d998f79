import { apiError, badRequest } from '../../platform/errors/api-error';
import type { Form } from '../../platform/input/form';
import { readInteger } from '../../platform/input/readers';
import type { NewFileUpload } from '../../uploads/file-uploads.service';
import {
  FILENAME,
  MAX_DISPLAY_NAME,
  MAX_FILENAME_CHARACTERS,
  UPLOAD_TRAITS,
  type Upload,
} from '../../uploads/upload.entity';
import type { UploadChange } from '../../uploads/upload-edits.service';
import type { Problems } from '../layout/fields';

const MAX_VERSION = 200;
// The channel names that the upload tool accepts.
const CHANNEL = /^[a-z0-9._-]{1,200}$/;
/** Characters that change the direction of text: `photo\u202Egpj.exe` would look like an image. */
const DIRECTIONS = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

const countCharacters = (text: string) => [...text].length;

interface FileDraft extends UploadChange {
  problems: Problems<'display_name'>;
}

const traitsIn = (form: Form): Upload['traits'] => UPLOAD_TRAITS.filter((trait) => form.isChecked(trait));

export function fileDraft(form: Form): FileDraft {
  const display_name = form.title('display_name');
  return {
    display_name: display_name || null,
    traits: traitsIn(form),
    hidden: form.isChecked('hidden'),
    problems: {
      display_name:
        countCharacters(display_name) > MAX_DISPLAY_NAME
          ? `The name can have at most ${MAX_DISPLAY_NAME} characters.`
          : undefined,
    },
  };
}

/** The file that a script of the page wants to upload. Errors are sentences, which the script shows. */
export function newFileIn(form: Form, game_id: number, maxBytes: number): NewFileUpload {
  const filename = form.text('filename') ?? '';
  if (
    filename.trim() === '' ||
    countCharacters(filename) > MAX_FILENAME_CHARACTERS ||
    !FILENAME.test(filename) ||
    DIRECTIONS.test(filename)
  )
    throw badRequest(
      `The file needs another name: at most ${MAX_FILENAME_CHARACTERS} characters, without slashes and control characters.`,
    );
  const size = readInteger(form.text('size') ?? '');
  if (typeof size !== 'number') throw badRequest('size must be an integer');
  if (size === 0) throw badRequest('The file is empty.');
  if (size > maxBytes) throw apiError(413, 'The file is larger than this store accepts.');
  const { problems, ...draft } = fileDraft(form);
  if (problems.display_name !== undefined) throw badRequest(problems.display_name);
  const channel_name = form.line('channel_name').toLowerCase() || null;
  if (channel_name !== null && !CHANNEL.test(channel_name))
    throw badRequest('The name of a channel can have the letters a to z, digits, and . _ -');
  const user_version = form.line('user_version') || null;
  if (user_version !== null && countCharacters(user_version) > MAX_VERSION)
    throw badRequest(`The version can have at most ${MAX_VERSION} characters.`);
  const replaces = form.text('replaces') === undefined ? null : readInteger(form.text('replaces'));
  if (replaces !== null && typeof replaces !== 'number') throw badRequest('replaces must be an integer');
  return { game_id, filename, size, ...draft, channel_name, user_version, replaces };
}
