import 'reflect-metadata';
import { Client } from 'pg';
import { migrateTemplate } from './template';

export default async function setup(): Promise<void> {
  const server = process.env.DATABASE_URL!;
  const template = `gamewharf_template_${process.pid}`;
  const client = new Client({ connectionString: server });
  await client.connect();
  await client.query(`CREATE DATABASE ${template}`);
  await client.end();
  const url = new URL(server);
  url.pathname = `/${template}`;
  await migrateTemplate(url.href);
  process.env.TEST_SERVER_URL = server;
  process.env.TEST_TEMPLATE = template;
}
