import { styleText } from 'node:util';
import type { WriteStream } from 'node:tty';

/** Pipes and files get no colors, and neither does anything with NO_COLOR, which Node reads. */
const hasColors = (stream: Partial<WriteStream>) => stream.hasColors?.() === true;

// By default, Node checks standard output for either stream.
const ANY_STREAM = { validateStream: false };

/** A red text on standard error. */
export const red = (text: string) => (hasColors(process.stderr) ? styleText('red', text, ANY_STREAM) : text);

/** A bold text on standard output. */
export const bold = (text: string) =>
  hasColors(process.stdout) ? styleText('bold', text, ANY_STREAM) : text;
