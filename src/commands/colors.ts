import { styleText } from 'node:util';
import type { WriteStream } from 'node:tty';

/** Not for pipes and files, and not with NO_COLOR, which Node reads. */
const hasColors = (stream: Partial<WriteStream>) => stream.hasColors?.() === true;

/** For standard error. */
export const red = (text: string) => (hasColors(process.stderr) ? styleText('red', text) : text);

/** For standard output. */
export const bold = (text: string) => (hasColors(process.stdout) ? styleText('bold', text) : text);
