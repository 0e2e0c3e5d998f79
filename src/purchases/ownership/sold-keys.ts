/** Whether the key was created with its purchase, and not later when a player claimed a game of a bundle. */
export const cameWithSale = (key: string) => `${key}.claimed_at IS DISTINCT FROM ${key}.created_at`;
