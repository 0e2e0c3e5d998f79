import { hasFormOfJwt } from '../auth/credential';
import { hashApiKey, hintOf, mayBeApiKey } from '../auth/api-key';
import { SCOPES } from '../auth/scopes';
import { COLLECTION_LAYOUTS } from '../collections/collection.entity';
import { isWorthSanitising, MAX_HTML_CHARACTERS, sanitiseHtml } from '../collections/html';
import { GAME_CLASSIFICATIONS, GAME_TRAITS, GAME_TYPES, GAME_VISIBILITIES } from '../games/game.entity';
import { PURCHASE_STATUSES, PURCHASE_TYPES } from '../purchases/purchase.entity';
import { BUILD_STATES } from '../wharf/build.entity';
import {
  amount,
  boolean,
  email,
  emails,
  fit,
  html,
  id,
  idOf,
  idOrIdsOf,
  idsOf,
  integer,
  type Kind,
  NULL,
  number,
  oneOf,
  text,
  texts,
  timestamp,
  url,
} from './kinds';

export type JsonObject = Record<string, unknown>;

export interface Field {
  name: string;
  kind: Kind;
  /** The columns of the staging table that the field fills. */
  columns: { name: string; sql: string }[];
  /** Of an optional field: its bit in `present`, and its default as COPY text. */
  bit: number;
  required: boolean;
  default: string;
  /** The default is the time of the import, for null too. */
  now: boolean;
  /** Lists are stored in other tables. */
  list: boolean;
  /** What the name and the kind do not say, for docs/reference/importing.md. */
  meaning: string;
  /** The default from other fields of the record. */
  implied?: (record: JsonObject) => unknown;
}

export interface RecordType {
  name: string;
  table: string;
  /** The column that a record is found by. */
  key: string;
  fields: Field[];
  /** Reports problems that concern several fields. */
  check?: (record: JsonObject, refuse: (problem: string) => void) => void;
}

type Options = Partial<Pick<Field, 'columns' | 'list' | 'implied' | 'meaning'>>;

const required = (name: string, kind: Kind, options: Options = {}): Field => ({
  name,
  kind,
  columns: [{ name, sql: kind.sql }],
  bit: 0,
  required: true,
  default: NULL,
  now: false,
  list: false,
  meaning: '',
  ...options,
});

const optional = (name: string, kind: Kind, fallback = NULL, options: Options = {}): Field => ({
  ...required(name, kind, options),
  required: false,
  default: fallback,
});

const NOW = Symbol('now');
const time = (name: string, fallback: typeof NOW | string = NULL, meaning = ''): Field =>
  fallback === NOW
    ? { ...optional(name, timestamp, NULL, { meaning }), now: true }
    : optional(name, timestamp, fallback, { meaning });

/** Gives each optional field its bit. */
const withBits = (fields: Field[]) => {
  let bit = 1;
  for (const field of fields) {
    if (field.required) continue;
    field.bit = bit;
    bit *= 2;
  }
  return fields;
};

const username = text({ max: 63, pattern: /^[A-Za-z0-9_-]+$/, form: 'consist of letters, digits, _ and -' });
const slug = text({ max: 100, pattern: /^[A-Za-z0-9_.-]+$/, form: 'consist of letters, digits, _, . and -' });
const line = text({ max: 1000 });
const trimmedTitle = (max: number) => text({ max, stored: (title) => title.trim() });
const scopes = texts({ max: 100, known: Object.keys(SCOPES) });
const cleanHtml = html({ max: MAX_HTML_CHARACTERS, sanitise: sanitiseHtml, isWorthSanitising });
// Limited, since every answer with the purchase has all its games.
export const MAX_BUNDLE = 10_000;
const MAX_INTEGER = 2 ** 31 - 1;

/** Holds a plain password until it is hashed; not a column. */
const password: Kind = {
  sql: 'text',
  allows: 'text of at most 1,000 characters',
  encode: (value, refuse) => (fit(value, { max: 1000 }, refuse) === undefined ? '' : NULL),
};

const counted: Kind = {
  sql: 'integer',
  allows: 'list of entries',
  encode: (value, refuse) => (Array.isArray(value) ? String(value.length) : refuse('must be a list')),
};

const redirectUris: Kind = {
  ...texts({ max: 2000, required: true }),
  allows: 'list of absolute URIs without a fragment, at least one',
  encode(value, refuse) {
    if (Array.isArray(value)) {
      value.forEach((one: unknown, index) => {
        if (typeof one !== 'string') return;
        const uri = URL.canParse(one) ? new URL(one) : undefined;
        if (!uri || uri.hash || ['javascript:', 'data:', 'vbscript:'].includes(uri.protocol)) {
          refuse('must be an absolute URI without a fragment', `[${index}]`);
        }
      });
    }
    return texts({ max: 2000, required: true }).encode(value, refuse);
  },
};

const apiKey = (pepper: Buffer): Kind => {
  const visible = text({ max: 512 });
  return {
    sql: 'bytea',
    allows: 'text of at most 512 characters without blanks, not of the form of a JWT',
    encode(value, refuse) {
      const key = fit(value, { max: 512, pattern: /^\S+$/, form: 'not contain blanks' }, refuse);
      if (key === undefined) return '';
      if (hasFormOfJwt(key)) return refuse('must not have the form of a JWT');
      if (!mayBeApiKey(key)) return refuse('has the form of a key made here, but a wrong checksum');
      return `\\\\x${hashApiKey(key, pepper).toString('hex')}\t${visible.encode(hintOf(key), () => '')}`;
    },
  };
};

/** The fields of an entry of a collection's `games`. */
export const ENTRY_FIELDS = withBits([
  required('game_id', idOf('game')),
  optional('blurb', cleanHtml),
  optional('user_id', idOf('user'), NULL, { meaning: 'who added it; otherwise the owner of the collection' }),
  time('created_at', NOW),
]);

/** All record types and their fields, in the order in which they are written. */
export const recordTypes = (pepper: Buffer): RecordType[] => [
  {
    name: 'user',
    table: 'users',
    key: 'id',
    fields: withBits([
      required('id', id),
      required('username', username),
      optional('display_name', text({ max: 200 })),
      optional('gamer', boolean, 't'),
      optional('developer', boolean, 'f'),
      optional('press_user', boolean, 'f'),
      optional('cover_url', url),
      optional('password', password, NULL, {
        columns: [{ name: 'password_hash', sql: 'text' }],
        meaning: 'plain here, stored as a hash',
      }),
      optional('emails', emails, '{}\t{}', {
        columns: [
          { name: 'emails', sql: 'text[]' },
          { name: 'emails_verified', sql: 'boolean[]' },
        ],
        list: true,
        meaning: 'replaces the stored list',
      }),
      time('created_at', NOW),
    ]),
  },
  {
    name: 'game',
    table: 'games',
    key: 'id',
    fields: withBits([
      required('id', id),
      required('user_id', idOf('user'), { meaning: 'its owner' }),
      required('slug', slug),
      required('title', trimmedTitle(500)),
      optional('short_text', line),
      // `type` is the type of record, so the game's type has another name.
      optional('game_type', oneOf(GAME_TYPES), 'default', {
        columns: [{ name: 'type', sql: 'text' }],
        meaning: 'what the API shows as `type`',
      }),
      optional('classification', oneOf(GAME_CLASSIFICATIONS), 'game'),
      optional('traits', texts({ max: 100, known: GAME_TRAITS }), '{}'),
      optional('visibility', oneOf(GAME_VISIBILITIES), 'public'),
      time('published_at', NULL, 'without it the game is not published'),
      time('created_at', NOW),
      optional('min_price', amount, '0', { meaning: 'in minor units' }),
      optional('cover_url', url),
      optional('views_count', amount, '0'),
      optional('downloads_count', amount, '0'),
      optional('admins', idsOf('user'), '{}', { list: true, meaning: 'replaces the stored list' }),
    ]),
  },
  {
    name: 'purchase',
    table: 'purchases',
    key: 'id',
    fields: withBits([
      required('id', id),
      required('game_id', idOrIdsOf('game', MAX_BUNDLE), {
        columns: [{ name: 'game_ids', sql: 'bigint[]' }],
        list: true,
        meaning: 'a list is a bundle',
      }),
      optional('purchase_type', oneOf(PURCHASE_TYPES), 'game', {
        implied: (record) => (Array.isArray(record.game_id) ? 'bundle' : undefined),
        meaning: '`bundle` for a list',
      }),
      required('email', text(email), { meaning: 'of the buyer' }),
      optional('user_id', idOf('user'), NULL, { meaning: 'the account of the buyer' }),
      time('created_at', NOW),
      required('source', text({ max: 100 }), {
        meaning:
          'where it was sold, such as `card` or `store`; lists of sales show it, and nothing depends on it',
      }),
      required('currency', text({ max: 3, pattern: /^[A-Z]{3}$/, form: 'be an ISO 4217 code such as USD' })),
      required('amount', amount, { meaning: 'what was paid for all of it, in minor units' }),
      optional('sale_rate', number(0, 100), '0', { meaning: 'percent off the price' }),
      optional('quantity', integer(1, MAX_INTEGER, 'integer'), '1', { meaning: 'copies' }),
      optional('status', oneOf(PURCHASE_STATUSES), 'complete'),
      optional('donation', boolean, 'f'),
      optional('reference', text({ max: 200 }), NULL, {
        list: true,
        meaning: "the checkout's own name for the sale, unique; a purchase with one may do without `id`",
      }),
      optional('with_key', boolean, 'f', {
        list: true,
        meaning:
          'true: each game of a complete purchase that has no download key gets one; none is taken away',
      }),
    ]),
    check(record, refuse) {
      if (Array.isArray(record.game_id) && (record.purchase_type ?? 'bundle') !== 'bundle') {
        refuse('purchase_type must be bundle when game_id is a list');
      }
    },
  },
  {
    name: 'download_key',
    table: 'download_keys',
    key: 'id',
    fields: withBits([
      required('id', id),
      required('key', text({ max: 512 })),
      required('game_id', idOf('game'), { meaning: 'the game that it opens' }),
      optional('purchase_id', idOf('purchase'), NULL, { meaning: 'the purchase that it belongs to' }),
      optional('email', text(email)),
      optional('user_id', idOf('user'), NULL, { meaning: 'the account that claimed it' }),
      time('created_at', NOW),
      optional('downloads', amount, '0', { meaning: 'how often it was used' }),
      time('revoked_at'),
    ]),
  },
  {
    name: 'collection',
    table: 'collections',
    key: 'id',
    fields: withBits([
      required('id', id),
      required('user_id', idOf('user'), { meaning: 'its owner' }),
      required('title', trimmedTitle(60)),
      optional('private', boolean, 'f'),
      optional('description', cleanHtml),
      optional('layout', oneOf(COLLECTION_LAYOUTS), 'grid'),
      optional('admins', idsOf('user'), '{}', { list: true }),
      // Entries have their own staging table: a collection may have a hundred thousand.
      optional('games', counted, '0', {
        columns: [{ name: 'games_count', sql: 'integer' }],
        meaning: 'in the order of display; replaces the stored list',
      }),
      time('created_at', NOW),
      time('updated_at', NOW),
    ]),
  },
  {
    name: 'build',
    table: 'builds',
    key: 'id',
    fields: withBits([
      required('id', id, { meaning: 'the highest of a channel is the newest build' }),
      required('game_id', idOf('game')),
      required('channel_name', text({ max: 200 })),
      optional('user_version', text({ max: 200 })),
      optional('state', oneOf(BUILD_STATES), 'completed'),
      time('created_at', NOW),
    ]),
  },
  {
    name: 'api_key',
    table: 'api_keys',
    key: 'key_hash',
    fields: withBits([
      required('key', apiKey(pepper), {
        columns: [
          { name: 'key_hash', sql: 'bytea' },
          { name: 'hint', sql: 'text' },
        ],
        meaning: 'plain here, stored as a hash',
      }),
      required('user_id', idOf('user')),
      optional('scopes', scopes, NULL, { meaning: 'without them it may do everything' }),
      optional('label', text({ max: 200 })),
      time('created_at', NOW),
      time('revoked_at'),
    ]),
  },
  {
    name: 'oauth_application',
    table: 'oauth_applications',
    key: 'client_id',
    fields: withBits([
      required('client_id', text({ max: 200, pattern: /^[\x21-\x7e]+$/, form: 'be printable ASCII' })),
      required('user_id', idOf('user')),
      required('name', trimmedTitle(100)),
      required('redirect_uris', redirectUris),
      required('scopes', scopes, { meaning: 'those that it may ask for' }),
      optional('implicit_allowed', boolean, 'f', { meaning: 'it takes tokens in the redirect address' }),
      optional('may_start_games', boolean, 'f', { meaning: 'it asks its users to start games as them' }),
    ]),
  },
];

export const bitOf = (type: RecordType, field: string) => type.fields.find(({ name }) => name === field)!.bit;
