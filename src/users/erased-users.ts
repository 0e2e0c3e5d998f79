/** The username of a user whose personal data was erased. Imports don't accept it for another user. */
export const PSEUDONYM = (id: string) => `'erased-' || ${id}`;

/** In SQL: whether `user` has no name but that of an erased user. */
export const isErased = (user: string) =>
  `${user}.username ~ ('^' || ${PSEUDONYM(`${user}.id`)} || '(-[0-9a-f]{8})?$')`;
