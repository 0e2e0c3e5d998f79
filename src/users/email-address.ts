import { lowerAscii } from '../platform/formats/lower-ascii';
import { ERASED_ADDRESS } from '../auth/accounts/erased-users';

const MAX_ADDRESS_CHARACTERS = 254;

/** Mail programs would read some other characters as several addresses or as a name with an address. */
const ADDRESS = /^[^\s\p{C}@,;:<>()[\]"\\]+@[^\s\p{C}@,;:<>()[\]"\\]+$/u;

/** Whether the text can be the email address of an account. */
export const isNewAddress = (text: string): boolean =>
  ADDRESS.test(text) && text.length <= MAX_ADDRESS_CHARACTERS && lowerAscii(text) !== ERASED_ADDRESS;
