import { randomBytes } from 'node:crypto';
import { Client } from 'pg';

export async function cloneDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const server = process.env.TEST_SERVER_URL!;
  const name = `gamewharf_test_${randomBytes(6).toString('hex')}`;
  const run = async (statement: string) => {
    const client = new Client({ connectionString: server });
    await client.connect();
    await client.query(statement);
    await client.end();
  };
  await run(`CREATE DATABASE ${name} TEMPLATE ${process.env.TEST_TEMPLATE}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return { url: url.href, drop: () => run(`DROP DATABASE ${name} WITH (FORCE)`) };
}
