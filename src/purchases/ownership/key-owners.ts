/**
 * The owner of the download key `key`: the account that claimed it or bought it while signed in (`account_id`),
 * otherwise the account that verified its email address, otherwise the account that verified its purchase's email
 * address.
 */
export const selectKeyOwner = (key: string) =>
  `coalesce(${key}.account_id, ${selectVerifier(`lower_ascii(${key}.email)`)}, ${selectVerifier(`${key}.purchase_email`)})`;

const selectVerifier = (address: string) =>
  `(SELECT user_id FROM user_emails WHERE email = ${address} AND verified)`;

/**
 * All keys of a user (an expression such as `$user_id`), by the rule of selectKeyOwner. `keys` selects keys `dk` by
 * a condition.
 */
export const selectOwnedKeys = (user: string, keys: (condition: string) => string) => `
  ${keys(`dk.account_id = ${user}`)}
  UNION ALL
  SELECT of_address.* FROM user_emails ue CROSS JOIN LATERAL (
    ${keys('dk.account_id IS NULL AND lower_ascii(dk.email) = ue.email')}
    UNION ALL
    ${keys(`dk.account_id IS NULL AND dk.purchase_email = ue.email AND ${selectVerifier('lower_ascii(dk.email)')} IS NULL`)}
  ) of_address
  WHERE ue.user_id = ${user} AND ue.verified`;

/** The keys of an email address: its own, those bought with it, and those of the user who verified it. */
export const keysFoundBy = (address: string, keys: (condition: string) => string) => `
  ${keys(`lower_ascii(dk.email) = lower_ascii(${address})`)}
  UNION ALL
  ${keys(`dk.purchase_email = lower_ascii(${address})`)}
  UNION ALL
  SELECT of_verifier.* FROM (SELECT user_id FROM user_emails WHERE email = lower_ascii(${address}) AND verified OFFSET 0) verifier
  CROSS JOIN LATERAL (${selectOwnedKeys('verifier.user_id', keys)} OFFSET 0) of_verifier`;

/** With the LIMIT, PostgreSQL reads only one index entry. */
export const newestOfGame = (game: string) => (condition: string) => `
  (SELECT dk.id, dk.created_at FROM download_keys dk
   WHERE ${condition} AND dk.game_id = ${game}.id AND dk.revoked_at IS NULL
   ORDER BY dk.created_at DESC, dk.id DESC LIMIT 1)`;

export const holdsKey = (game: string, user: string) =>
  `EXISTS (${selectOwnedKeys(user, newestOfGame(game))})`;
