/** The owner of the app to which an API key was issued; NULL: the key is the user's own. */
export const selectApplicationOwner = (api_key_id: string) => `(
  SELECT a.user_id FROM api_keys k
  JOIN oauth_grants gr ON gr.id = k.grant_id
  JOIN oauth_applications a ON a.client_id = gr.client_id
  WHERE k.id = ${api_key_id})`;
