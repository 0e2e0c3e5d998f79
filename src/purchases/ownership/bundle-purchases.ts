/**
 * The complete purchases of bundles that belong to a user (an expression such as `$user_id`): those of the account,
 * and those with an email address that it has verified. A purchase that is both is listed twice. `condition`
 * is an additional one on a purchase `p`. With OFFSET 0, each email address is looked up in the index.
 */
export const selectBundlePurchases = (user: string, condition = 'true') => {
  const purchases = (buyer: string) => `
    SELECT p.id, p.bundle_id, p.created_at FROM purchases p
    WHERE ${buyer} AND p.bundle_id IS NOT NULL AND p.status = 'complete' AND ${condition}`;
  return `
  ${purchases(`p.user_id = ${user}`)}
  UNION ALL
  SELECT of_address.* FROM user_emails ue
  CROSS JOIN LATERAL (${purchases('lower_ascii(p.email) = ue.email')} OFFSET 0) of_address
  WHERE ue.user_id = ${user} AND ue.verified`;
};

/** Whether the user has a complete purchase of the bundle (an expression such as `$user_id`). */
export const ownsBundle = (bundle: string, user: string) =>
  `EXISTS (${selectBundlePurchases(user, `p.bundle_id = ${bundle}`)})`;
