import { UsageError } from '../platform/errors/operator-error';
import { isNewAddress } from '../users/email-address';

/** A new email address, which isn't the one of erased users. */
export function requireAddress(text: string): string {
  if (!isNewAddress(text)) throw new UsageError(`${text} isn't a valid email address.`);
  return text;
}
