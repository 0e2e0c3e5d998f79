import type { ListedKey } from '../../purchases/keys/created-keys.service';
import { MAX_NEW_KEYS, MAX_LABEL } from '../../purchases/keys/download-key.dto';
import { withQuery } from '../../platform/input/form';
import { html, type Html } from '../layout/html';
import { formToken, type Page } from '../layout/layout';
import { field, hasProblems, type Problems } from '../layout/fields';
import {
  actions,
  type Columns,
  confirmation,
  copyable,
  countOf,
  day,
  done,
  facts,
  linkButton,
  muted,
  noMore,
  number,
  numberedPages,
  pageLinks,
  tableOr,
  unlabeled,
} from '../layout/parts';
import { keysPath, salesPath } from '../sales/sales-paths';
import type { SignedInVisitor } from '../layout/visitor';
import { GAMES_ON_A_PAGE, type KeysReport, MAX_COUNTED_KEYS } from './games-report.service';

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
  /** The query of the page: the IDs of its keys. */
  from?: string;
  to?: string;
}

export function gamesWithKeysPage(rows: KeysReport[], page: number): Page {
  const games = rows.slice(0, GAMES_ON_A_PAGE);
  return {
    section: KEYS_PATH,
    title: 'Download keys',
    main: html`<h1>Download keys</h1>
      <p class="lead">
        Keys that you create for reviewers, friends or other stores. Keys that come with a purchase are on the
        pages of its sales.
      </p>
      ${tableOr(noMore('games', page), 'Games with their download keys', GAME_COLUMNS, games)}
      ${numberedPages(KEYS_PATH, page, rows.length > GAMES_ON_A_PAGE)}`,
  };
}

const GAME_COLUMNS: Columns<KeysReport> = {
  Game: ({ id, title }) => html`<a href="${keysPath(id)}">${title}</a>`,
  Created: number(({ created }) => countOf(created, MAX_COUNTED_KEYS)),
  Unclaimed: number(({ unclaimed }) => countOf(unclaimed, MAX_COUNTED_KEYS)),
  More: actions(({ id, title }) => linkButton(keysPath(id), 'Keys', `of ${title}`)),
};

export function keysPage(visitor: SignedInVisitor, listed: Listed, draft = NO_KEYS): Page {
  const { game_id, title, keys, from, to } = listed;
  const path = keysPath(game_id);
  const shown = keys.slice(0, KEYS_ON_A_PAGE);
  return {
    section: KEYS_PATH,
    title: `Download keys of ${title}`,
    status: hasProblems(draft.problems) ? 400 : 200,
    main: (notice) =>
      html`<div class="head">
          <h1>Download keys of ${title}</h1>
          <div class="buttons">
            <a class="button quiet" href="${KEYS_PATH}">All games</a>
            <a class="button quiet" href="${withQuery(`${path}.csv`, { from, to })}">Download as CSV</a>
          </div>
        </div>
        <p class="lead">
          Give keys to reviewers and friends, or sell them elsewhere. The first player who redeems a key gets
          the game. Keys that came with a purchase are on the pages of the
          <a href="${salesPath(game_id)}">sales</a>.
        </p>
        ${done(notice.done)} ${notice.first_key !== undefined && notice.first_key === from && batchOf(keys)}
        ${form(visitor, path, draft)}
        ${tableOr(
          to === undefined ? 'There are no keys yet.' : 'There are no more keys.',
          'Download keys, newest first',
          columnsOf(path),
          shown,
        )}
        ${pageLinks({
          'All keys': (from ?? to) !== undefined && path,
          Older: keys.length > KEYS_ON_A_PAGE && withQuery(path, { from, to: String(shown.at(-1)!.id - 1) }),
        })}`,
  };
}

export const revokePage = (visitor: SignedInVisitor, game_id: number, title: string, key: ListedKey): Page =>
  confirmation(visitor, {
    section: KEYS_PATH,
    title: 'Revoke download key',
    question: 'Revoke this download key?',
    facts: html`${facts({
        Game: title,
        Key: html`<code>${key.key}</code>`,
        Label: key.label ?? false,
        Status: statusOf(key),
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

const batchOf = (keys: ListedKey[]): Html => {
  const label = keys.length === 1 ? 'New key' : `${keys.length} new keys`;
  const lines = keys.map(({ key }) => key).toReversed();
  return html`<div class="card fresh">${copyable('new-keys', label, lines.join('\n'))}</div>`;
};

const form = (visitor: SignedInVisitor, path: string, { count, label, problems }: KeysDraft): Html =>
  html`<form method="post" action="${path}" class="card row">
    ${formToken(visitor)}
    ${field({ id: 'count', label: 'Number of keys', type: 'number', min: 1, max: MAX_NEW_KEYS, value: count, required: true, problem: problems.count })}
    ${field({ id: 'label', label: html`Label <small>optional, only you see it</small>`, value: label, maxlength: MAX_LABEL, placeholder: 'Press kit', problem: problems.label })}
    <button>Create keys</button>
  </form>`;

const statusOf = ({ revoked, owner, email }: ListedKey): string => {
  if (revoked) return 'Revoked';
  if (owner !== null) return `Claimed by ${owner}`;
  return email === null ? 'Unclaimed' : `For ${email}`;
};

const keyText = ({ id, key, revoked, url }: KeyWithPage): Html =>
  html`<div class="copyable">
    <code id="key-${id}">${key}</code>
    ${!revoked && html`<button type="button" class="quiet" data-copy="key-${id}" hidden>Copy</button>`}
    ${!revoked && url !== null && linkButton(url, 'Page', `of key ${key}`)}
  </div>`;

const columnsOf = (path: string): Columns<KeyWithPage> => ({
  Key: keyText,
  Label: ({ label }) => label ?? muted('None'),
  Created: ({ created_at }) => day(created_at),
  Status: unlabeled(statusOf),
  Revoke: actions(
    ({ id, key, revoked }) => !revoked && linkButton(`${path}/${id}/revoke`, 'Revoke', key, 'quiet danger'),
  ),
});
