/** The username of a user whose personal data was erased. Imports don't accept it for another user. */
export const PSEUDONYM = (id: string) => `'erased-' || ${id}`;

/** SQL condition: whether `user` has only the name of an erased user. */
export const isErased = (user: string) =>
  `${user}.username ~ ('^' || ${PSEUDONYM(`${user}.id`)} || '(-[0-9a-f]{8})?$')`;

/** Whether a stored username is the pseudonym of this account. */
export const isPseudonym = (username: string, user_id: number) =>
  new RegExp(`^erased-${user_id}(-[0-9a-f]{8})?$`).test(username);

/** Replaces the email address of an erased buyer; no email reaches it, and it can't be verified. */
export const ERASED_ADDRESS = 'nobody@erased.invalid';
