import { createHash, randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import { Writable } from 'node:stream';
import type { ModuleMetadata } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import { Pool } from 'pg';
import { hashApiKey } from '../../src/auth/keys/api-key';
import { PasswordCost } from '../../src/auth/sign-in/password-hash';
import { problemsOfManifestScopes } from '../../src/auth/access/scopes';
import { type Settings, loadSettings } from '../../src/platform/config/settings';
import { AppModule } from '../../src/app.module';
import { Database } from '../../src/platform/database/database';
import { pgTypes } from '../../src/platform/database/pg-types';
import { createLogger, NestLogger } from '../../src/platform/observability/logger';
import { describeApi } from '../../src/platform/openapi/describe-api';
import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import { Clock } from '../../src/platform/config/clock';
import { adapterFor, configured, optionsWith } from '../../src/app';
import { Contract } from './contract';
import { TestClock } from './clock';
import { cloneDatabase } from './database';

/**
 * The lowest cost of argon2. Hashing at the service's own cost would take a second of CPU time for every 25 sign-ins.
 */
export const LOW_COST: PasswordCost = { memoryCost: 8, timeCost: 1, parallelism: 1 };

export const PEPPER = 'a pepper for tests, long enough to pass';

let app: NestExpressApplication;
/** Shared by all replicas of this file. */
const clock = new TestClock();
const opened: NestExpressApplication[] = [];
let pool: Pool;
let contract: Contract | undefined;
let url = '';
let database_url = '';
declare global {
  var serviceLog: string[] | undefined;
}
/** What the service has logged in this file so far. `environment.mjs` shows its errors if a test fails. */
export const logged: string[] = (globalThis.serviceLog ??= []);

export type Environment = Partial<Record<keyof Settings, string>>;

/** A running service with its own database for this file. */
export function useStore(environment: Environment = {}, openDatabase = cloneDatabase): void {
  let drop: () => Promise<void>;
  afterEach(() => clock.reset());
  beforeAll(async () => {
    const database = await openDatabase();
    drop = database.drop;
    database_url = database.url;
    pool = new Pool({ connectionString: database.direct_url ?? database.url, types: pgTypes, max: 4 });
    // The database may be dropped before all of its connections are closed.
    pool.on('error', () => undefined);
    app = await openApp({ DATABASE_URL: database.url, ...environment });
    url = await app.getUrl();
    contract = undefined;
    // The first file of a run compiles the service.
  }, 300_000);
  afterAll(async () => {
    // A replica left running would fail the next file with an error that names that file.
    for (const one of opened) if ((one.getHttpServer() as Server).listening) await gracefulStop(one);
    await pool?.end();
    await drop?.();
  });
}

interface Extension {
  /** Modules in addition to those of the service. */
  imports?: ModuleMetadata['imports'];
  /** Replaces providers, like `Test.createTestingModule`. */
  override?: (builder: TestingModuleBuilder) => TestingModuleBuilder;
  /** Adds middleware that runs before that of the service. */
  before?: (app: NestExpressApplication) => void;
  /** Called before the app is initialized. */
  configure?: (app: NestExpressApplication) => void;
}

/** Another replica, on this file's database or another one; it stops with the file, or before. */
export async function openApp(
  environment: Environment = {},
  { imports = [], override = (builder) => builder, before, configure }: Extension = {},
): Promise<NestExpressApplication> {
  const settings = loadSettings(
    {
      NODE_ENV: 'test',
      PORT: '0',
      API_KEY_PEPPER: PEPPER,
      // Tests send more requests than any client; those of the limits set their own.
      RATE_LIMIT: 'off',
      ...(process.env.TEST_POOLER_URL ? { DATABASE_PREPARED_STATEMENTS: 'false' } : {}),
      DATABASE_URL: database_url,
      ...environment,
    } as NodeJS.ProcessEnv,
    problemsOfManifestScopes,
  );
  const log = new Writable({
    write(chunk: Buffer, _encoding, done) {
      logged.push(chunk.toString());
      done();
    },
  });
  const logger = createLogger(settings.LOG_LEVEL, log);
  const builder = Test.createTestingModule({ imports: [AppModule.with(settings, logger), ...imports] });
  builder.setLogger(new NestLogger(logger));
  builder.overrideProvider(Clock).useValue(clock).overrideProvider(PasswordCost).useValue(LOW_COST);
  const module = await override(builder).compile();
  const replica = configured(
    module.createNestApplication<NestExpressApplication>(adapterFor(settings), optionsWith(logger)),
    before,
  );
  configure?.(replica);
  opened.push(replica);
  await replica.listen(settings.PORT, settings.HOST);
  await replica.get(Database).connect();
  return replica;
}

export const baseUrl = () => url;
export const databaseUrl = () => database_url;
export const theApp = () => app;
export const theClock = () => clock;
/** Built on first use: many files send nothing that it describes. */
export const theContract = () => (contract ??= new Contract(describeApi(app), describeApi(app, 'operator')));

/** Queries the database directly, without the service. */
export async function sql<Row extends object = Record<string, unknown>>(
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  return (await pool.query(text, values)).rows as Row[];
}

export interface HttpResponse {
  status: number;
  body: unknown;
}

export const ok = (body: unknown): HttpResponse => ({ status: 200, body });
export const failure = (status: number, ...errors: string[]): HttpResponse => ({ status, body: { errors } });

type Fields = Record<string, unknown>;

const encoded = (fields: Fields) =>
  new URLSearchParams(
    Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]): [string, string] => [
        name,
        typeof value === 'object' ? JSON.stringify(value) : String(value),
      ]),
  ).toString();

/** Sends one request, validates the response against the API description, and returns all of it. */
export async function send(
  method: string,
  path: string,
  options: { headers?: Record<string, string>; body?: RequestInit['body'] } = {},
): Promise<HttpResponse & { headers: Headers; text: string }> {
  const response = await fetch(url + path, { method, redirect: 'manual', ...options });
  const text = await response.text();
  const type = response.headers.get('content-type') ?? '';
  const body: unknown = type.startsWith('application/json') ? JSON.parse(text) : text;
  const { status, headers } = response;
  theContract().check(method, path, { status, body, header: (name) => headers.get(name) });
  // Rejected requests are invalid on purpose.
  if (status < 300)
    theContract().checkRequest(method, path, options.headers?.['content-type'] ?? '', options.body);
  return { status, body, headers, text };
}

/** A client of the service: returns only the status and body of responses, which tests compare. */
export class Actor {
  constructor(
    readonly id: number,
    readonly username: string,
    readonly key: string | undefined,
  ) {}

  /** The same user with another credential. */
  with(credential: string | undefined): Actor {
    return new Actor(this.id, this.username, credential);
  }

  get headers(): Record<string, string> {
    return this.key === undefined ? {} : { authorization: `Bearer ${this.key}` };
  }

  async get(path: string, query: Fields = {}): Promise<HttpResponse> {
    const question = encoded(query);
    const { status, body } = await send('GET', question ? `${path}?${question}` : path, {
      headers: this.headers,
    });
    return { status, body };
  }

  post(path: string, form?: Fields): Promise<HttpResponse> {
    return this.write('POST', path, form);
  }

  async write(method: string, path: string, form: Fields = {}): Promise<HttpResponse> {
    const { status, body } = await send(method, path, {
      headers: { ...this.headers, 'content-type': 'application/x-www-form-urlencoded' },
      body: encoded(form),
    });
    return { status, body };
  }

  async postJson(path: string, json: unknown): Promise<HttpResponse> {
    const { status, body } = await send('POST', path, {
      headers: { ...this.headers, 'content-type': 'application/json' },
      body: typeof json === 'string' ? json : JSON.stringify(json),
    });
    return { status, body };
  }
}

export const anonymous = new Actor(0, 'anonymous', undefined);

let serial = 0;

async function insert<Row extends { id: number }>(table: string, fields: Fields): Promise<Row> {
  const names = Object.keys(fields);
  const places = names.map((_, i) => `$${i + 1}`);
  const [row] = await sql<Row>(
    `INSERT INTO ${table} (${names.join(', ')}) VALUES (${places.join(', ')}) RETURNING *`,
    Object.values(fields),
  );
  return row!;
}

type Owner = { id: number };

/** Rows with the required fields only. */
export const make = {
  async user(fields: Fields & { emails?: { email: string; verified: boolean }[] } = {}): Promise<Actor> {
    const { emails = [], ...columns } = fields;
    const username = String(columns.username ?? `user${++serial}`);
    const { id } = await insert('users', { ...columns, username });
    for (const { email, verified } of emails)
      await sql('INSERT INTO user_emails (user_id, email, verified) VALUES ($1, lower($2), $3)', [
        id,
        email,
        verified,
      ]);
    return new Actor(id, username, await make.key({ owner: { id } }));
  },

  /** An API key as text; unscoped without `scopes`. */
  async key({
    owner,
    scopes = null,
    text: key = randomBytes(20).toString('hex'),
  }: {
    owner: Owner;
    scopes?: string[] | null;
    text?: string;
  }): Promise<string> {
    await insert('api_keys', {
      key_hash: hashApiKey(key, Buffer.from(PEPPER)),
      hint: key.slice(0, 4),
      user_id: owner.id,
      scopes,
    });
    return key;
  },

  async game({ owner, admins = [], ...fields }: Fields & { owner: Owner; admins?: Owner[] }) {
    const n = ++serial;
    const game = await insert<{ id: number; slug: string; title: string }>('games', {
      user_id: owner.id,
      slug: `game-${n}`,
      title: `Game ${n}`,
      published_at: '2024-05-06T07:08:09Z',
      ...fields,
    });
    for (const admin of admins)
      await sql('INSERT INTO game_admins (game_id, user_id) VALUES ($1, $2)', [game.id, admin.id]);
    return game;
  },

  async purchase({ games, ...fields }: Fields & { games: Owner[] }) {
    const purchase = await insert('purchases', {
      email: `buyer${++serial}@example.com`,
      source: 'card',
      currency: 'USD',
      amount: 500,
      ...fields,
    });
    for (const game of games)
      await sql('INSERT INTO purchase_games (purchase_id, game_id) VALUES ($1, $2)', [purchase.id, game.id]);
    return purchase;
  },

  async bundle({ owner, games, ...fields }: Fields & { owner: Owner; games: Owner[] }) {
    const n = ++serial;
    const bundle = await insert<{ id: number; slug: string; title: string }>('bundles', {
      user_id: owner.id,
      slug: `bundle-${n}`,
      title: `Bundle ${n}`,
      games_count: games.length,
      ...fields,
    });
    await sql(
      `INSERT INTO bundle_games (bundle_id, game_id, position)
       SELECT $1, * FROM unnest($2::bigint[]) WITH ORDINALITY`,
      [bundle.id, games.map(({ id }) => id)],
    );
    return bundle;
  },

  async downloadKey({ game, ...fields }: Fields & { game: Owner }) {
    return insert<{ id: number; key: string }>('download_keys', {
      key: createHash('sha256').update(`key ${++serial}`).digest('base64url').slice(0, 24),
      game_id: game.id,
      ...fields,
    });
  },

  async collection({
    owner,
    admins = [],
    games = [],
    ...fields
  }: Fields & { owner: Owner; admins?: Owner[]; games?: Owner[] }) {
    const collection = await insert('collections', {
      user_id: owner.id,
      title: `Collection ${++serial}`,
      games_count: games.length,
      ...fields,
    });
    for (const admin of admins)
      await sql('INSERT INTO collection_admins (collection_id, user_id) VALUES ($1, $2)', [
        collection.id,
        admin.id,
      ]);
    for (const [i, game] of games.entries())
      await sql(
        'INSERT INTO collection_games (collection_id, game_id, sort_key, user_id) VALUES ($1, $2, $3, $4)',
        [collection.id, game.id, i + 1, owner.id],
      );
    return collection;
  },

  async build({ game, ...fields }: Fields & { game: Owner }) {
    return insert('builds', { game_id: game.id, channel_name: 'windows', ...fields });
  },

  /** A hosted file, if the fields contain no other source. */
  async upload({ game, ...fields }: Fields & { game: Owner }) {
    const hosted = { file_key: 'moon/moon.zip', size: 42 };
    const source = 'channel_name' in fields || 'external_url' in fields || 'size' in fields ? {} : hosted;
    return insert('uploads', { game_id: game.id, filename: 'moon.zip', ...source, ...fields });
  },
};

/** The users of most tests: an owner, an admin, a developer of other games, and an unrelated user. */
export async function actors() {
  return {
    owner: await make.user({ developer: true }),
    admin: await make.user({ developer: true }),
    developer: await make.user({ developer: true }),
    stranger: await make.user(),
    anonymous,
  };
}
