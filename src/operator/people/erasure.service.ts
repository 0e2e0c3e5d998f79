import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import {
  AttemptsService,
  accountSubject,
  deviceCodeSubject,
  downloadKeySubject,
} from '../../auth/sign-in/attempts.service';
import { ApiKeysService } from '../../auth/keys/api-keys.service';
import { LOCK_COLLECTIONS } from '../../collections/collection-access';
import { StoreLinks } from '../../platform/config/store-links';
import { Database } from '../../platform/database/database';
import { bind, type Statement, type Values } from '../../platform/database/statement';
import { isPseudonym } from '../../auth/accounts/erased-users';
import { CLAIMS, type Person } from './person';
import * as sql from './erasure-statements';
import { transposeKeys, type Scan, sliceRows } from './table-scan';
import {
  RESPONSES,
  DOWNLOAD_KEYS,
  COLLECTION_ENTRIES,
  type Entry,
  KEY_LABELS,
  PURCHASES,
} from './person-scans';

// After this delay, every replica rejects the revoked credentials.
const REVOCATION_DELAY_MS = 1000;
// Rows that one transaction changes.
const ROWS_PER_SLICE = 500;

const CHANGED_TABLES = [
  'users',
  'user_emails',
  'attempts',
  'audit_events',
  'collections',
  'collection_games',
  'idempotency_keys',
  'purchases',
  'download_keys',
  'refunds',
  ...sql.DELETE_CREDENTIALS.map(([table]) => table),
] as const;

/** The number of rows about the person in each table. */
type Erased = Record<(typeof CHANGED_TABLES)[number], number> & Record<string, number>;

/** Credentials that are created under a lock of the user, so none can be added after the account's last transaction. */
const LAST_CREDENTIALS = sql.DELETE_CREDENTIALS.filter(([table]) =>
  ['identities', 'sessions'].includes(table),
).map(([, statement]) => statement);

export const withoutZeros = (erased: Erased): Record<string, number> =>
  Object.fromEntries(Object.entries(erased).filter(([, count]) => count > 0));

/** Whether the user chose the name, because an erasure replaces only chosen names. */
const isChosenName = (username: string | null, user_id: number | null) =>
  username !== null && user_id !== null && !isPseudonym(username, user_id);

/**
 * Erases a person in short transactions, so that no other client waits for a large one. The account's name and email
 * addresses, which identify the rows, are erased last: a repeated request continues an interrupted erasure.
 */
@Injectable()
export class ErasureService {
  constructor(
    private readonly database: Database,
    @InjectDataSource() private readonly source: DataSource,
    private readonly keys: ApiKeysService,
    private readonly attempts: AttemptsService,
    private readonly links: StoreLinks,
  ) {}

  async erase(person: Person): Promise<Erased> {
    const deletions = sql.deletions(this.source);
    const tables = [...CHANGED_TABLES, ...deletions.map(([table]) => table)];
    const erased = Object.fromEntries(tables.map((table) => [table, 0])) as Erased;
    const { user_id } = person;
    const newest = (await this.database.row(sql.NEWEST_SALES, {}))!;
    if (user_id !== null && (await this.endCredentials(user_id, erased))) await sleep(REVOCATION_DELAY_MS);
    await this.eraseSales(person, erased);
    if (user_id !== null) {
      for (const [table, statement] of deletions) erased[table] = await this.repeat(statement, { user_id });
      erased.audit_events += await this.repeat(sql.FORGET_EVENT_DETAILS, { user_id });
      erased.refunds += await this.repeat(sql.FORGET_REFUNDERS, { user_id });
      await this.eraseCollections(user_id, person, erased);
      // Credentials may have been created while the account could still be used.
      await this.endCredentials(user_id, erased);
    }
    await this.eraseAttempts(person, erased);
    for (const [table, statement] of sql.DELETE_LINKS)
      erased[table] = (erased[table] ?? 0) + (await this.repeat(statement, { addresses: person.addresses }));
    await this.eraseClaims(person, erased);
    if (user_id !== null) await this.eraseAccount(user_id, erased);
    // Erases sales that were made during the erasure.
    await this.eraseSales(person, erased, newest);
    await this.eraseResponses(person, erased);
    return erased;
  }

  /** Returns whether the account could still be used. */
  private async endCredentials(user_id: number, erased: Erased): Promise<boolean> {
    let found = (await this.database.rows(sql.CLOSE_ACCOUNT, { user_id })).length;
    if (found > 0) erased.users = 1;
    await this.keys.revokeAllTokens(user_id);
    await this.database.rows(sql.EMPTY_APPLICATIONS, { user_id });
    for (const [table, statement] of sql.DELETE_CREDENTIALS) {
      const count = await this.repeat(statement, { user_id });
      erased[table] += count;
      found += count;
    }
    this.keys.forgetAll();
    return found > 0;
  }

  /** Earnings and counts belong to the games, and are retained. */
  private async eraseSales(
    person: Person,
    erased: Erased,
    after = { purchases: 0, download_keys: 0 },
  ): Promise<void> {
    const { user_id, username, display_name, addresses } = person;
    const names = [...addresses, username, display_name].flatMap((name) =>
      name ? [sql.namePattern(name)] : [],
    );
    const eraseKeys = async (slice: { id: number }[]) => {
      const ids = slice.map(({ id }) => id);
      await this.database.execute([
        bind(sql.LOCK_PURCHASES_OF_KEYS, { ids }),
        bind(sql.FORGET_KEY_OWNERS, { user_id, addresses, ids }),
      ]);
      erased.download_keys += ids.length;
    };
    const erasePurchases = async (slice: { id: number }[]) => {
      const ids = slice.map(({ id }) => id);
      await this.database.execute([
        bind(sql.LOCK_PURCHASES, { ids }),
        bind(sql.DELETE_REFERENCES, { ids, names }),
        bind(sql.FORGET_RESPONSES, { ids }),
        bind(sql.FORGET_BUYERS, { user_id, addresses, ids }),
      ]);
      erased.purchases += ids.length;
    };
    await this.eachSlice(DOWNLOAD_KEYS, person, eraseKeys, [after.download_keys]);
    await this.eraseNamesInLabels(person, erased, after.download_keys);
    await this.eachSlice(PURCHASES, person, erasePurchases, [after.purchases]);
  }

  private async eraseNamesInLabels(
    { user_id, username, display_name, addresses }: Person,
    erased: Erased,
    after: number,
  ): Promise<void> {
    const names = [...addresses, display_name, isChosenName(username, user_id) ? username : null];
    const patterns = names.flatMap((name) => (name ? [sql.patternInLabels(name)] : []));
    if (patterns.length === 0) return;
    await this.eachSlice(
      KEY_LABELS,
      { user_id, addresses: patterns },
      async (slice) => {
        const ids = slice.map(({ id }) => id);
        const values = { ids, pattern: patterns.join('|') };
        const changed = await this.database.rows(sql.FORGET_NAMES_IN_LABELS, values);
        erased.download_keys += changed.length;
      },
      [after],
    );
  }

  private async eraseCollections(user_id: number, person: Person, erased: Erased): Promise<void> {
    erased.collection_games += await this.repeat(sql.DELETE_ENTRIES_OF_OWN, { user_id });
    erased.collections += await this.repeat(sql.DELETE_COLLECTIONS, { user_id });
    await this.eachSlice(COLLECTION_ENTRIES, person, async (slice: Entry[]) => {
      const [collection_ids, game_ids] = transposeKeys(COLLECTION_ENTRIES, slice);
      await this.database.execute([
        bind(LOCK_COLLECTIONS, { collection_ids }),
        bind(sql.REASSIGN_ENTRIES, { user_id, collection_ids, game_ids }),
        bind(sql.TOUCH_COLLECTIONS, { collection_ids }),
      ]);
      erased.collection_games += slice.length;
    });
  }

  private async eraseAttempts({ user_id, username, addresses }: Person, erased: Erased): Promise<void> {
    const names = username === null ? addresses : [username.toLowerCase(), ...addresses];
    const subjects = names.map((name) => accountSubject({ id: null, name }));
    if (user_id !== null)
      subjects.push(
        accountSubject({ id: user_id, name: '' }),
        deviceCodeSubject(user_id),
        downloadKeySubject(user_id),
      );
    erased.attempts += await this.attempts.forget(subjects);
  }

  private async eraseClaims(person: Person, erased: Erased): Promise<void> {
    await this.eachSlice(CLAIMS, person, async (slice) => {
      const [user_ids, emails] = transposeKeys(CLAIMS, slice);
      erased.user_emails += await this.repeat(sql.DELETE_CLAIMS, { user_ids, emails });
    });
  }

  private async eraseAccount(user_id: number, erased: Erased): Promise<void> {
    const getRows = await this.database.execute([
      bind(sql.LOCK_USER, { user_id }),
      // Includes credentials that were created while the account could still be used. The lock prevents new
      // ones.
      ...LAST_CREDENTIALS.map((statement) => bind(statement, { user_id })),
      bind(sql.DELETE_ADDRESSES, { user_id }),
      bind(sql.ERASE_ACCOUNT, { user_id }),
    ]);
    const addresses = getRows(sql.DELETE_ADDRESSES);
    const names = getRows(sql.ERASE_ACCOUNT);
    erased.user_emails += addresses.length;
    erased.users = Math.max(erased.users, names.length);
  }

  /**
   * Must run after the account is renamed, so that no response is stored with the old name. Deletes responses
   * to other users that contain the person: repeating those writes to a collection changes nothing.
   */
  private async eraseResponses({ user_id, username }: Person, erased: Erased): Promise<void> {
    if (user_id === null) return;
    const addresses = [`"user_id":${user_id},`];
    if (!isPseudonym(username!, user_id)) addresses.push(`"${this.links.user(username!)}/`);
    await this.eachSlice(RESPONSES, { user_id, addresses }, async (slice) => {
      const [credentials, key_hashes] = transposeKeys(RESPONSES, slice);
      erased.idempotency_keys += await this.repeat(sql.DELETE_RESPONSES, { credentials, key_hashes });
    });
  }

  private async eachSlice<Keys>(
    scan: Scan<Keys>,
    person: Pick<Person, 'user_id' | 'addresses'>,
    work: (slice: Keys[]) => Promise<void>,
    after?: number[],
  ): Promise<void> {
    for await (const rows of scan.rows(this.database, person, after))
      for (const slice of sliceRows(rows, ROWS_PER_SLICE)) await work(slice);
  }

  /** Runs a statement that changes a limited number of rows until none is left. */
  private async repeat(statement: Statement, values: Values): Promise<number> {
    for (let count = 0; ;) {
      const { length } = await this.database.rows(statement, values);
      count += length;
      if (length < sql.ROWS_PER_BATCH) return count;
    }
  }
}
