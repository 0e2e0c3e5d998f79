import { OperatorError } from '../platform/errors/operator-error';
import { lowerAscii } from '../platform/formats/lower-ascii';
import { ERASED_ADDRESS } from '../users/erased-users';

/** A new email address, which isn't the one of erased users. */
export function requireAddress(text: string): string {
  const isValid = /^[^\s@]+@[^\s@]+$/.test(text) && text.length <= 254;
  if (!isValid || lowerAscii(text) === ERASED_ADDRESS)
    throw new OperatorError(`${text} isn't a valid email address.`);
  return text;
}
