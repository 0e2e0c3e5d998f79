import { styleText } from 'node:util';
import type { WriteStream } from 'node:tty';

/** Not for pipes and files, and not with NO_COLOR, which Node reads. */
const hasColors = (stream: Partial<WriteStream>) => stream.hasColors?.() === true;

// Node would check standard output in each case.
const ANY_STREAM = { validateStream: false };

/** For standard error. */
export const red = (text: string) => (hasColors(process.stderr) ? styleText('red', text, ANY_STREAM) : text);

/** For standard output. */
export const bold = (text: string) =>
  hasColors(process.stdout) ? styleText('bold', text, ANY_STREAM) : text;
