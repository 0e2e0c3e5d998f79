import type { KeyFilter, ListedKey } from '../../purchases/keys/filtered-keys.service';
import { MAX_NEW_KEYS, MAX_LABEL_CHARACTERS } from '../../purchases/keys/download-key.dto';
import { withQuery } from '../../platform/input/form';
import { html, type Html } from '../layout/html';
import { formToken, type Page } from '../layout/layout';
import { checkbox, field, hasProblems, type Problems, selectField, filterForm } from '../layout/fields';
import {
  actions,
  clipped,
  type Columns,
  confirmation,
  copyable,
  formatCount,
  day,
  done,
  descriptionList,
  lastShown,
  linkButton,
  muted,
  newestFirstPages,
  noMore,
  number,
  pageLinks,
  tableOr,
  unlabeled,
} from '../layout/components';
import { keysPath, salesPath } from '../sales/sales-paths';
import type { SignedInVisitor } from '../layout/visitor';
import { gameTabs } from '../sales/game-tabs';
import { EDITED_GAMES_ON_A_PAGE } from '../../games/edited-games';
import { type GameWithKeys, MAX_COUNTED_KEYS } from '../../purchases/keys/created-keys.service';

export const KEYS_ON_A_PAGE = 50;

const KEYS_PATH = '/user/settings/download-keys';

export interface KeysDraft {
  count: string;
  label: string;
  problems: Problems<'count' | 'label'>;
}

export const NO_KEYS: KeysDraft = { count: '10', label: '', problems: {} };

interface KeyWithPage extends ListedKey {
  url: string | null;
}

interface Listed {
  game_id: number;
  title: string;
  keys: KeyWithPage[];
  labels: string[];
  filter: KeyFilter;
  /** The ID at which the search continues, if few keys match. */
  searched_to: number | null;
  /** Whether keys have pages, and whether the links of these are shown instead of the keys. */
  hasLinks: boolean;
  showsLinks: boolean;
}

const filterQuery = ({ from, to, label, state }: KeyFilter) => ({
  from: from?.toString(),
  to: to?.toString(),
  label,
  state,
});

export function gamesWithKeysPage(rows: GameWithKeys[], isFirst: boolean): Page {
  const games = rows.slice(0, EDITED_GAMES_ON_A_PAGE);
  return {
    section: KEYS_PATH,
    title: 'Download keys',
    main: html`<h1>Download keys</h1>
      <p class="lead">
        Keys that you create for reviewers, friends or other stores. Keys that come with a purchase are on the
        pages of its sales.
      </p>
      ${tableOr(noMore('games', isFirst), 'Games with their download keys', GAME_COLUMNS, games)}
      ${newestFirstPages(KEYS_PATH, isFirst, lastShown(rows, EDITED_GAMES_ON_A_PAGE))}`,
  };
}

const GAME_COLUMNS: Columns<GameWithKeys> = {
  Game: ({ id, title }) => html`<a href="${keysPath(id)}">${title}</a>`,
  Created: number(({ created }) => formatCount(created, MAX_COUNTED_KEYS)),
  Unclaimed: number(({ unclaimed }) => formatCount(unclaimed, MAX_COUNTED_KEYS)),
  More: actions(({ id, title }) => linkButton(keysPath(id), 'Keys', `of ${title}`)),
};

export function keysPage(visitor: SignedInVisitor, listed: Listed, draft = NO_KEYS): Page {
  const { game_id, title, keys, filter } = listed;
  const path = keysPath(game_id);
  const batch = batchQuery(filter);
  return {
    section: KEYS_PATH,
    title: `Download keys of ${title}`,
    tables: true,
    status: hasProblems(draft.problems) ? 400 : 200,
    main: (notice) =>
      html`<div class="head">
          <h1>Download keys of ${title}</h1>
          <div class="buttons">
            <a class="button quiet" href="${KEYS_PATH}">All games</a>
            <a class="button quiet" href="${withQuery(`${path}.csv`, batch)}"
              >Download ${isFiltered(batch) ? 'these' : 'all'} keys as CSV</a
            >
          </div>
        </div>
        ${gameTabs(game_id, 'keys')}
        <p class="lead">
          Give keys to reviewers and friends, or sell them elsewhere. The first player who redeems a key gets
          the game. Keys that came with a purchase are on the pages of the
          <a href="${salesPath(game_id)}">sales</a>.
        </p>
        ${done(notice.message)}
        ${notice.first_key !== undefined && notice.first_key === filter.from?.toString() && batchSection(keys, listed)}
        ${form(visitor, path, draft)} ${filters(path, listed)} ${keyList(path, listed)}`,
  };
}

/** Without a first ID, the last ID only says which page of all keys this is. */
const batchQuery = (filter: KeyFilter) =>
  filterQuery({ ...filter, to: filter.from === undefined ? undefined : filter.to });

const isFiltered = (batch: ReturnType<typeof batchQuery>) =>
  Object.values(batch).some((value) => value !== undefined);

/** The keys of this page, with what can be done with all of them. */
function keyList(path: string, { keys, filter, searched_to, showsLinks }: Listed): Html {
  const shown = keys.slice(0, KEYS_ON_A_PAGE);
  const live = shown.filter(({ revoked }) => !revoked);
  const batch = batchQuery(filter);
  const query = { ...filterQuery(filter), show: showsLinks ? 'links' : undefined };
  const next = keys.length > KEYS_ON_A_PAGE ? shown.at(-1)!.id - 1 : searched_to && searched_to - 1;
  return html`${tableOr(
    noKeys(filter),
    'Download keys, newest first',
    keyColumns(path, showsLinks),
    shown,
    'cards list',
  )}
  ${
    live.length > 1 &&
    html`<details>
      <summary>Copy these ${live.length} ${showsLinks ? 'links' : 'keys'}</summary>
      ${copyable('shown-keys', showsLinks ? 'Links' : 'Keys', showsLinks ? linkTexts(live) : keyTexts(live))}
    </details>`
  }
  ${
    isFiltered(batch) &&
    filter.state !== 'revoked' &&
    live.length > 0 &&
    html`<div class="buttons">
      ${linkButton(withQuery(`${path}/revoke`, batch), 'Revoke all of these keys', '', 'quiet danger')}
    </div>`
  }
  ${pageLinks({
    'All keys': (isFiltered(batch) || filter.to !== undefined) && path,
    Older: next !== null && withQuery(path, { ...query, to: String(next) }),
  })}`;
}

function noKeys(filter: KeyFilter): string {
  if (isFiltered(batchQuery(filter))) return 'No key matches.';
  return filter.to === undefined ? 'There are no keys yet.' : 'There are no more keys.';
}

const STATES: readonly (readonly [string, string])[] = [
  ['', 'Any state'],
  ['unclaimed', 'Unclaimed'],
  ['claimed', 'Claimed'],
  ['revoked', 'Revoked'],
];

/** Keeps the range of IDs, because it identifies a batch of keys. */
function filters(path: string, { filter, labels, hasLinks, showsLinks }: Listed): Html {
  const { from, to } = filterQuery(filter);
  const { label = '', state = '' } = filter;
  const all = label === '' || labels.includes(label) ? labels : [label, ...labels];
  return filterForm(
    path,
    html`${hiddenFields(from === undefined ? {} : { from, to })}
    ${selectField('state', 'State', STATES, state)} ${labelField(all, label)}
    ${
      hasLinks &&
      selectField(
        'show',
        'Show',
        [
          ['', 'Keys'],
          ['links', 'Links'],
        ],
        showsLinks ? 'links' : '',
      )
    }`,
  );
}

const hiddenFields = (values: Record<string, string | undefined>): Html =>
  html`${Object.entries(values).map(
    ([name, value]) => value !== undefined && html`<input type="hidden" name="${name}" value="${value}" />`,
  )}`;

/** Doesn't use `selectField`: the field for the label of new keys has the same name. */
const labelField = (labels: string[], chosen: string): Html =>
  html`<label class="field" for="of-label"
    >Label
    <select id="of-label" name="label">
      <option value="">Any label</option>
      ${labels.map((one) => html`<option value="${one}" ${one === chosen && html` selected`}>${one}</option>`)}
    </select></label
  >`;

interface LiveKeys {
  title: string;
  unclaimed: number;
  claimed: number;
  to: number | null;
}

/** Asks before all keys of a filter are revoked; keys that are created later are not among them. */
export function revokeAllPage(
  visitor: SignedInVisitor,
  game_id: number,
  { title, unclaimed, claimed, to }: LiveKeys,
  filter: KeyFilter,
): Page {
  const isClaimed = filter.state === 'claimed';
  const count = isClaimed ? claimed : unclaimed;
  const query = filterQuery(filter);
  return confirmation(visitor, {
    section: KEYS_PATH,
    title: 'Revoke download keys',
    question: `Revoke ${count === 1 ? '1 key' : `${formatCount(count)} keys`}?`,
    details: html`${descriptionList({ Game: title, Label: filter.label ?? false, Unclaimed: formatCount(unclaimed), Claimed: formatCount(claimed) })}
      <p>
        Revoked keys can no longer be redeemed. Players who claimed one lose the game, unless another key or a
        purchase gives access to it.
      </p>`,
    fields: html`${hiddenFields({ from: query.from, to: String(to), label: query.label, state: query.state })}
    ${claimed > 0 && filter.state === undefined && checkbox('claimed', false, html`Also revoke ${formatCount(claimed)} claimed ${claimed === 1 ? 'key' : 'keys'}`)}`,
    action: `${keysPath(game_id)}/revoke`,
    button: 'Revoke keys',
    back: withQuery(keysPath(game_id), query),
  });
}

export const revokePage = (visitor: SignedInVisitor, game_id: number, title: string, key: ListedKey): Page =>
  confirmation(visitor, {
    section: KEYS_PATH,
    title: 'Revoke download key',
    question: 'Revoke this download key?',
    details: html`${descriptionList({
        Game: title,
        Key: html`<code>${key.key}</code>`,
        Label: key.label ?? false,
        Status: keyStatus(key),
      })}
      <p>
        ${
          key.owner === null
            ? 'The key can no longer be redeemed.'
            : `${key.owner} loses the game, unless another key or a purchase gives access to it.`
        }
      </p>`,
    action: `${keysPath(game_id)}/${key.id}/revoke`,
    button: 'Revoke key',
    back: keysPath(game_id),
  });

/** The keys, oldest first. */
const keyTexts = (keys: KeyWithPage[]): string => joinReversed(keys.map(({ key }) => key));

/** The links of the keys, oldest first. */
const linkTexts = (keys: KeyWithPage[]): string => joinReversed(keys.map(({ key, url }) => url ?? key));

const joinReversed = (texts: string[]): string => texts.toReversed().join('\n');

const batchSection = (keys: KeyWithPage[], { hasLinks }: Listed): Html => {
  const label = keys.length === 1 ? 'New key' : `${keys.length} new keys`;
  return html`<div class="card fresh stack">
    ${copyable('new-keys', label, keyTexts(keys))}
    ${hasLinks && copyable('new-links', keys.length === 1 ? 'Its link' : 'Their links', linkTexts(keys))}
  </div>`;
};

const form = (visitor: SignedInVisitor, path: string, { count, label, problems }: KeysDraft): Html =>
  html`<form method="post" action="${path}" class="card row">
    ${formToken(visitor)}
    ${field({ id: 'count', label: 'Number of keys', type: 'number', min: 1, max: MAX_NEW_KEYS, value: count, required: true, problem: problems.count })}
    ${field({ id: 'label', label: html`Label <small>optional, only you see it</small>`, value: label, maxlength: MAX_LABEL_CHARACTERS, placeholder: 'Press kit', problem: problems.label })}
    <button>Create keys</button>
  </form>`;

const keyStatus = ({ revoked, owner, email }: ListedKey): string => {
  if (revoked) return 'Revoked';
  if (owner !== null) return `Claimed by ${owner}`;
  return email === null ? 'Unclaimed' : `For ${email}`;
};

const keyColumns = (path: string, showsLinks: boolean): Columns<KeyWithPage> => ({
  Key: ({ id, key, revoked, url }) =>
    revoked
      ? html`<code>${key}</code>`
      : clipped(`key-${id}`, showsLinks && url !== null ? url : key, url ?? undefined),
  Label: ({ label }) =>
    label === null ? muted('None') : html`<a href="${withQuery(path, { label })}">${label}</a>`,
  Created: ({ created_at }) => day(created_at),
  Status: unlabeled(keyStatus),
  Downloads: number(({ downloads }) => formatCount(downloads)),
  Revoke: actions(
    ({ id, key, revoked }) => !revoked && linkButton(`${path}/${id}/revoke`, 'Revoke', key, 'quiet danger'),
  ),
});
