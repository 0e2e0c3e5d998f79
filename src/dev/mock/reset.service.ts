import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { EntityManager } from 'typeorm';
import { ApiKeysService } from '../../auth/keys/api-keys.service';
import { Settings } from '../../platform/config/settings';
import { User } from '../../auth/accounts/user.entity';
import { invalidGame } from '../../games/errors';
import { Game } from '../../games/game.entity';
import { apiError } from '../../platform/errors/api-error';
import { PurchaseReference } from '../../purchases/purchase-reference.entity';
import { connectTo, importRecords } from '../../operator/import/import-records';
import { Faults } from './faults.service';
import { withMockUser } from './mock-seed';
import { LiveQuirks } from './quirks.service';
import { RecordedRequests } from './recorded-requests.service';
import { ResetLock } from './reset-lock';

/** Tables that aren't contents of a store: the schema's version, what belongs to the process, and a log that nothing may change. */
const KEPT_TABLES = ['migrations', 'signing_keys', 'operator_tokens', 'audit_events'];

const MAX_SMALL_TABLE_BYTES = 1024 * 1024;

/** Brings the store back to its seed. */
@Injectable()
export class ResetService {
  private seed = '';

  constructor(
    private readonly settings: Settings,
    private readonly lock: ResetLock,
    private readonly faults: Faults,
    private readonly recorded: RecordedRequests,
    private readonly quirks: LiveQuirks,
    private readonly keys: ApiKeysService,
    private readonly db: EntityManager,
  ) {}

  /** Fills the new store. Later resets return to these records. */
  async start(seed: string): Promise<void> {
    await this.load(seed);
    this.seed = seed;
  }

  /** Uses one transaction: if a record is invalid, the store stays as it is. */
  reset(records: string): Promise<void> {
    const isEmpty = records.trim() === '';
    return this.lock.reset(async () => {
      await this.load(isEmpty ? this.seed : records);
      this.faults.reset();
      this.recorded.reset();
      this.quirks.reset();
    });
  }

  async findPurchase(reference: string): Promise<number | undefined> {
    return (await this.db.findOneBy(PurchaseReference, { reference }))?.purchase_id;
  }

  async requirePlayerAndGame(user_id: number, game_id: number): Promise<void> {
    if (!(await this.db.existsBy(User, { id: user_id }))) throw apiError(404, 'invalid user');
    if (!(await this.db.existsBy(Game, { id: game_id }))) throw invalidGame();
  }

  private async load(records: string): Promise<void> {
    await importRecords(() => connectTo(this.settings), Readable.from(withMockUser(records)), {
      pepper: Buffer.from(this.settings.API_KEY_PEPPER ?? ''),
      idempotency: async (client, apply) => {
        await emptyStore(client);
        return apply();
      },
    });
    this.keys.forgetAll();
  }
}

/** Deletes the rows of small tables rather than truncating them: new files take most of the time of a truncation. */
async function emptyStore(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ name: string; isSmall: boolean }>(
    `SELECT quote_ident(relname) AS name, pg_table_size(oid) <= ${MAX_SMALL_TABLE_BYTES} AS "isSmall" FROM pg_class
     WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> ALL ($1)`,
    [KEPT_TABLES],
  );
  const large = rows.filter(({ isSmall }) => !isSmall);
  if (large.length > 0) await client.query(`TRUNCATE ${large.map(({ name }) => name).join(', ')} CASCADE`);
  const small = rows.filter(({ isSmall }) => isSmall);
  // References between tables need no check if all rows are deleted.
  await client.query('SET LOCAL session_replication_role = replica');
  await client.query(small.map(({ name }) => `DELETE FROM ${name}`).join('; '));
  await client.query('SET LOCAL session_replication_role = origin');
  await restartSequences(client);
}

/** Unlike setval(), this is rolled back with the transaction. */
async function restartSequences(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ restart: string }>(
    `SELECT format('ALTER TABLE %I ALTER COLUMN %I RESTART', table_name, column_name) AS restart
     FROM information_schema.columns
     WHERE table_schema = 'public' AND is_identity = 'YES' AND table_name <> ALL ($1)
       AND pg_sequence_last_value(pg_get_serial_sequence(quote_ident(table_name), column_name)::regclass) IS NOT NULL`,
    [KEPT_TABLES],
  );
  if (rows.length > 0) await client.query(rows.map(({ restart }) => restart).join('; '));
}
