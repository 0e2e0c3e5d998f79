import { covers } from '../../auth/access/credential';
import { apiError } from '../../platform/errors/api-error';
import { formatCursor } from '../../platform/input/cursor';
import { withQuery } from '../../platform/input/form';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { InvalidValue } from '../../platform/input/input-values';
import { readInteger } from '../../platform/input/readers';
import type { Consent } from '../../auth/oauth/grants.service';
import { describeScope } from '../../auth/oauth/oauth-scopes';
import { changeForm } from './fields';
import { html, type Html, type Part } from './html';
import type { Page } from './layout';
import type { Visitor } from './visitor';

export const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The day of a timestamp in PostgreSQL's format. */
export function day(timestamp: string | null): Html {
  if (timestamp === null) return muted('Never');
  const [year, month, date] = timestamp.slice(0, 10).split('-');
  return html`<time datetime="${timestamp.slice(0, 10)}"
    >${Number(date)} ${MONTHS[Number(month) - 1]} ${year}</time
  >`;
}

/** Precise to the second, in UTC. */
export const timeElement = (timestamp: string): Html =>
  html`${day(timestamp)}, ${modernTimestamp(timestamp).slice(11, 19)} UTC`;

/** A short state or property. A `warning` needs attention. */
export const tag = (text: string, style?: 'warning'): Html =>
  html`<span class="tag${style && ` ${style}`}">${text[0]!.toUpperCase()}${text.slice(1)}</span>`;

/** Names that programs use, with the words that people know them by. */
const KNOWN_NAMES: Record<string, string> = { osx: 'macOS', paypal: 'PayPal', itchio: 'itch.io' };

/** `bank_transfer` is shown as `Bank transfer`; a text that isn't such a name is unchanged. */
export function inWords(name: string): string {
  if (Object.hasOwn(KNOWN_NAMES, name)) return KNOWN_NAMES[name]!;
  return /^[a-z][a-z\d]*(_[a-z\d]+)*$/.test(name)
    ? name[0]!.toUpperCase() + name.slice(1).replaceAll('_', ' ')
    : name;
}

/** A text in one line, cut off where there is no place for it, with a button that copies it if JavaScript is enabled. */
export const clipped = (id: string, text: string, href?: string): Html =>
  html`<span class="clip"
    >${href === undefined ? html`<span id="${id}" title="${text}">${text}</span>` : html`<a id="${id}" href="${href}" title="${text}">${text}</a>`}<button
      type="button"
      class="quiet copy"
      data-copy="${id}"
      hidden
    >
      <span class="hidden">Copy ${text}</span>
    </button></span
  >`;

/** Text in place of a missing value. */
export const muted = (text: string): Html => html`<span class="muted">${text}</span>`;

export const alert = (problem: string): Html => html`<p class="alert" role="alert">${problem}</p>`;

/** The result of a form. */
export const done = (text: string | undefined): Html =>
  html`${text !== undefined && html`<p class="done" role="status">${text}</p>`}`;

type Cell<Row> = (row: Row) => Part;

interface StyledCell<Row> {
  cell: Cell<Row>;
  style?: 'number' | 'actions';
  unlabeled?: true;
}

/** The cells of a table, by the names of their columns. The first column names the row. */
export type Columns<Row> = Record<string, Cell<Row> | StyledCell<Row>>;

const inStyle =
  (style: StyledCell<never>['style']) =>
  <Row>(cell: Cell<Row>): StyledCell<Row> => ({ cell, style });

export const number = inStyle('number');
/** Buttons, in a column whose name is for screen readers. */
export const actions = inStyle('actions');
/** Leaves out the name of the column, which cells show on a phone. */
export const unlabeled = <Row>(cell: Cell<Row> | StyledCell<Row>): StyledCell<Row> => ({
  ...styled(cell),
  unlabeled: true,
});

const styled = <Row>(cell: Cell<Row> | StyledCell<Row>): StyledCell<Row> =>
  typeof cell === 'function' ? { cell } : cell;

function tableHeading(name: string, style: StyledCell<never>['style']): Html {
  if (style === 'actions') return html`<th scope="col"><span class="hidden">${name}</span></th> `;
  return html`<th scope="col" ${style === 'number' && html` class="number"`}>${name}</th> `;
}

function tableCell<Row>(name: string, { cell, style, unlabeled }: StyledCell<Row>, row: Row): Html {
  const label = html`${style !== 'actions' && html` data-label="${!unlabeled && name}"`}`;
  return html`<td ${style && html` class="${style}"`} ${label}>${cell(row)}</td> `;
}

/** A table, which the style `cards` shows as cards on a phone. */
export function table<Row>(
  caption: string,
  columns: Columns<Row>,
  rows: readonly Row[],
  style = 'cards',
): Html {
  const all = Object.entries(columns).map(([name, cell]) => [name, styled(cell)] as const);
  const [[, first], ...others] = all as [(typeof all)[0], ...typeof all];
  return html`<table ${style && html` class="${style}"`}>
    <caption class="hidden">
      ${caption}
    </caption>
    <thead>
      <tr>
        ${all.map(([name, { style }]) => tableHeading(name, style))}
      </tr>
    </thead>
    <tbody>
      ${rows.map(
        (row) =>
          html`<tr>
            <th scope="row">${first.cell(row)}</th>
            ${others.map(([name, cell]) => tableCell(name, cell, row))}
          </tr>`,
      )}
    </tbody>
  </table>`;
}

export const tableOr = <Row>(
  empty: Part,
  caption: string,
  columns: Columns<Row>,
  rows: readonly Row[],
  style?: string,
): Html => (rows.length === 0 ? html`<p class="empty">${empty}</p>` : table(caption, columns, rows, style));

/** A link that looks like a button; `about` tells screen readers which one of several it is. */
export const linkButton = (href: string, words: string, about = '', style = 'quiet'): Html =>
  html`<a class="button ${style}" href="${href}"
    >${words}${about && html`<span class="hidden"> ${about}</span>`}</a
  > `;

/** The text of an empty page of a list. */
export const noMore = (things: string, isFirst: boolean, first = `You have no ${things} yet.`): string =>
  isFirst ? first : `There are no more ${things}.`;

/** Values by name, without those that are false. */
export const descriptionList = (values: Record<string, Part>, style = 'facts'): Html =>
  html`<dl class="${style}">
    ${Object.entries(values).map(
      ([name, value]) =>
        value !== false &&
        html`<dt>${name}</dt>
          <dd>${value}</dd> `,
    )}
  </dl>`;

/** Links to other pages of a list, by their text; those without a URL are omitted. */
export function pageLinks(links: Record<string, string | false>): Html {
  const present = Object.entries(links).filter(([, href]) => href !== false);
  const nav = html`<nav class="buttons" aria-label="Pages">
    ${present.map(([words, href]) => linkButton(href as string, words))}
  </nav>`;
  return present.length > 0 ? nav : html``;
}

/** Links between the numbered pages of a list; `words` are the texts for the previous and the next one. */
export const numberedPages = (
  path: string,
  page: number,
  isMore: boolean,
  [before, after] = ['Newer', 'Older'],
) =>
  pageLinks({
    [before!]: page > 1 && withQuery(path, { page: String(page - 1) }),
    [after!]: isMore && withQuery(path, { page: String(page + 1) }),
  });

/** The row after which the next page of a list begins, if there are more rows than the page shows. */
export const lastShown = <Row>(rows: readonly Row[], shown: number): Row | undefined =>
  rows.length > shown ? rows[shown - 1] : undefined;

/** Links between the pages of a list that begin after an entry; `next`: the one before the next page. */
export const continuedPages = (
  path: string,
  isFirst: boolean,
  next: string | undefined,
  [first, later] = ['Newest', 'Older'],
): Html =>
  pageLinks({
    [first!]: !isFirst && path,
    [later!]: next !== undefined && withQuery(path, { after: next }),
  });

/** Links between the pages of a list that is sorted by creation time, newest first. */
export const newestFirstPages = (
  path: string,
  isFirst: boolean,
  last: { created_at: string; id: number } | undefined,
): Html => continuedPages(path, isFirst, last && formatCursor({ at: last.created_at, id: last.id }));

/** `1,000+` for more than `most`. */
export const formatCount = (value: number, most = Infinity): string =>
  `${Math.min(value, most).toLocaleString('en-US')}${value > most ? '+' : ''}`;

/** A page that asks for confirmation; `back` is the URL of its other choice. */
export const confirmation = (
  visitor: Visitor,
  {
    question,
    details,
    fields,
    ...page
  }: {
    question: string;
    details: Html;
    action: string;
    button: string;
    back: string;
    fields?: Html;
  } & Pick<Page, 'title' | 'section'>,
): Page => ({
  ...page,
  single: true,
  main: html`<h1>${question}</h1>
    <div class="card stack">
      ${details} ${changeForm(visitor, { ...page, danger: true }, fields, 'stack')}
    </div>`,
});

/** A text to copy, with a button if JavaScript is enabled. */
export const copyable = (id: string, label: string, text: string): Html =>
  html`<div class="field">
    <label for="${id}">${label}</label>
    <div class="copyable">
      <textarea id="${id}" readonly rows="1" spellcheck="false" autocomplete="off">${text}</textarea>
      <button type="button" class="quiet" data-copy="${id}" hidden>Copy</button>
    </div>
  </div>`;

export function parseId(text: string): number {
  const id = readInteger(text);
  if (id instanceof InvalidValue) throw apiError(404, 'Check the URL for typos.');
  return id;
}

const LAST_PAGE = 10_000;

export function parsePage(text: string | undefined): number {
  const page = text === undefined ? 1 : readInteger(text);
  return typeof page === 'number' && page >= 1 ? Math.min(page, LAST_PAGE) : 1;
}

/** The permissions of an app, in words. Those that `before` lacks are tagged as new. */
export const permissionList = (
  { scopes, may_start_games }: Pick<Consent, 'scopes' | 'may_start_games'>,
  before?: Pick<Consent, 'scopes' | 'may_start_games'> | null,
): Html => {
  const line = (words: string, granted: boolean | null | undefined) =>
    html`<li>${words}${granted === false && html` ${tag('New')}`}</li>`;
  return html`<ul class="scopes">
    ${scopes.map((scope) => line(describeScope(scope), before && covers(before.scopes, scope)))}
    ${may_start_games && line('Start games as you', before?.may_start_games)}
  </ul>`;
};
