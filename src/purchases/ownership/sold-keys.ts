/** Whether the key came with its purchase, and wasn't created when a player claimed a game of a bundle. */
export const cameWithSale = (key: string) => `${key}.claimed_at IS DISTINCT FROM ${key}.created_at`;
