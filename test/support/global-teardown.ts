import { Client } from 'pg';

export default async function teardown(): Promise<void> {
  const client = new Client({ connectionString: process.env.TEST_SERVER_URL });
  await client.connect();
  await client.query(`DROP DATABASE ${process.env.TEST_TEMPLATE}`);
  await client.end();
}
