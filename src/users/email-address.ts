import { lowerAscii } from '../platform/formats/lower-ascii';
import { ERASED_ADDRESS } from '../auth/accounts/erased-users';

const MAX_ADDRESS = 254;

/** Whether the text can be the email address of an account. */
export const isNewAddress = (text: string): boolean =>
  /^[^\s@]+@[^\s@]+$/.test(text) && text.length <= MAX_ADDRESS && lowerAscii(text) !== ERASED_ADDRESS;
