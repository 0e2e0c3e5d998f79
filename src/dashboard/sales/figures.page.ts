import { SALES_PATH } from '../layout/layout';
import { daysIn } from '../../platform/formats/days';
import { formatMoney } from '../../platform/formats/money';
import { withQuery } from '../../platform/input/form';
import { html, type Html } from '../layout/html';
import type { Page } from '../layout/layout';
import { problemAt, selectField, filterForm } from '../layout/fields';
import {
  actions,
  type Columns,
  formatCount,
  day,
  inWords,
  linkButton,
  muted,
  noMore,
  number,
  pageLinks,
  table,
} from '../layout/components';
import { type Bar, chart, formatSales, shareBar } from './chart';
import { dateFields } from './filter';
import { listChartColumns, formatColumn, type Period, RANGES, formatShortColumn, UNIT_NAMES } from './period';
import { MAX_RECENT, type Recent, type Sold } from '../../purchases/sales/recent-sales';
import type { GameSold, Report } from '../../purchases/sales/sales-report.service';
import { buyersPath, FIGURES_PATH } from './sales-paths';
import { salesViews } from './sales-views';

const FIGURES_FILE = `${FIGURES_PATH}.csv`;
const SOURCES_SHOWN = 10;
export const RANKED_GAMES_ON_A_PAGE = 25;

export const FIGURES_QUERY = ['range', 'from', 'to', 'by', 'currency', 'game', 'page'] as const;
export type FiguresQuery = Partial<Record<(typeof FIGURES_QUERY)[number], string>>;

interface FiguresView {
  query: FiguresQuery;
  period: Period;
  report: Report;
  page: number;
  /** The title of the game, if the figures cover only one. */
  title: string | undefined;
}

const urlWith = (query: FiguresQuery, changed: FiguresQuery): string =>
  withQuery(FIGURES_PATH, { ...query, page: undefined, ...changed });

export function figuresPage(view: FiguresView): Page {
  const { query, title, report, period } = view;
  const name = title === undefined ? 'Figures' : `Figures of ${title}`;
  return {
    section: SALES_PATH,
    title: name,
    tables: true,
    main: html`<div class="head">
        <h1>${name}</h1>
        ${
          title !== undefined &&
          html`<div class="buttons">
            <a class="button quiet" href="${urlWith(query, { game: undefined })}">All games</a>
          </div>`
        }
      </div>
      ${salesViews('figures', query.game)} ${filters(query, period, report)}
      ${report.chosen ? figures(report, period, report.chosen.currency) : nothingSold(query, period)}
      ${report.chosen && chartCard(view, report.chosen.currency)} ${gameList(view)}
      ${report.chosen && sourceList(view, report.chosen.currency)} ${notes(report)}`,
  };
}

function filters(query: FiguresQuery, period: Period, report: Report): Html {
  const { range, unit, units, problem } = period;
  return html`${filterForm(
    FIGURES_PATH,
    html`${query.game !== undefined && html`<input type="hidden" name="game" value="${query.game}" />`}
    ${selectField(
      'range',
      'Period',
      Object.entries(RANGES).map(([value, { name }]) => [value, name]),
      range,
    )}
    ${dateFields(query, period)}
    ${selectField(
      'by',
      'Group by',
      units.map((one) => [one, UNIT_NAMES[one]]),
      unit,
    )}
    ${
      report.totals.length > 0 &&
      selectField(
        'currency',
        'Currency',
        report.totals.map(({ currency, purchases }) => [currency, `${currency} · ${formatSales(purchases)}`]),
        report.chosen!.currency,
      )
    }`,
  )}
  ${problemAt('dates', problem)}`;
}

const nothingSold = (query: FiguresQuery, { range, from, to }: Period): Html =>
  html`<p class="empty">
    ${
      range === 'all'
        ? 'There are no sales.'
        : html`No sales from ${day(from)} to ${day(to)}.
            <a href="${urlWith(query, { range: 'all', by: undefined })}">Show all time</a>`
    }
  </p>`;

function figures({ chosen, current, previous }: Report, period: Period, currency: string): Html {
  const { purchases, amount, previous_purchases, previous_amount } = chosen!;
  const money = (value: number) => formatMoney(Math.round(value), currency);
  const share = ({ keys, claimed }: Recent) => (keys > 0 ? (claimed / keys) * 100 : undefined);
  const [sold, soldBefore] = [
    purchases > 0 && amount / purchases,
    previous_purchases > 0 && previous_amount / previous_purchases,
  ];
  const [claimed, claimedBefore] = [share(current), share(previous)];
  const points = Math.round(claimed ?? 0) - Math.round(claimedBefore ?? 0);
  const sample = current.isSample || previous.isSample;
  const shown: [name: string, value: string, change: string | false][] = [
    ['Revenue', money(amount), describeChange(amount, previous_amount, money)],
    ['Sales', formatCount(purchases), describeChange(purchases, previous_purchases, formatCount)],
    [
      'Refunds',
      formatCount(current.refunds),
      !sample && describeChange(current.refunds, previous.refunds, formatCount),
    ],
    [
      'Average order',
      sold === false ? '–' : money(sold),
      sold !== false && soldBefore !== false && describeChange(sold, soldBefore, money),
    ],
    [
      'Keys claimed',
      claimed === undefined ? '–' : `${Math.round(claimed)}%`,
      claimed !== undefined &&
        claimedBefore !== undefined &&
        `${signed(points)} ${Math.abs(points) === 1 ? 'point' : 'points'}`,
    ],
  ];
  const days = daysIn(period);
  return html`<h2 class="period">
      ${day(period.from)} to ${day(period.to)}
      ${period.previous && html`<small>compared with the ${days === 1 ? 'day' : `${days} days`} before</small>`}
    </h2>
    <dl class="figures">
      ${shown.map(
        ([name, value, change]) =>
          html`<div>
            <dt>${name}</dt>
            <dd><strong>${value}</strong>${period.previous && change && html` <small>${change}</small>`}</dd>
          </div> `,
      )}
    </dl>`;
}

const signed = (value: number) => `${value < 0 ? '−' : '+'}${formatCount(Math.abs(value))}`;

/** `+12% from $900.00`; without a percentage if the earlier value is 0. */
const describeChange = (now: number, before: number, text: (value: number) => string): string =>
  now === before
    ? 'no change'
    : `${before > 0 ? `${signed(Math.round((now / before - 1) * 100))}% ` : ''}from ${text(before)}`;

export function columnsWith({ columns, before }: Report, period: Period): (Bar & { first: string })[] {
  return listChartColumns(period).map((first) => ({
    first,
    name: formatColumn(first, period.unit),
    short: formatShortColumn(first, period),
    before: period.previous && (before.get(first) ?? 0),
    ...(columns.get(first) ?? { purchases: 0, amount: 0 }),
  }));
}

const csvLink = (query: FiguresQuery, of: 'time' | 'game' | 'source', unit: string = of): Html =>
  html`<a class="button quiet" href="${withQuery(FIGURES_FILE, { ...query, page: undefined, of })}"
    >Download CSV by ${unit}</a
  >`;

function chartCard({ query, period, report, title }: FiguresView, currency: string): Html {
  const columns = columnsWith(report, period);
  const label = `${title ?? 'Sales'}: revenue in ${currency} and number of sales, by ${period.unit}`;
  return html`<figure class="card stack">
    ${chart(columns, currency, label, period.previous && nameOfPrevious(period))}
    <details>
      <summary>Show as table</summary>
      ${table(label, { 'Time (UTC)': ({ name }) => name, ...soldColumns(currency), ...(period.previous && beforeColumn(currency)) }, columns.toReversed(), '')}
    </details>
    <div class="buttons">${csvLink(query, 'time', period.unit)}</div>
  </figure>`;
}

const beforeColumn = (currency: string): Columns<Bar> => ({
  'Revenue before': number(({ before = 0 }) => formatMoney(before, currency)),
});

const nameOfPrevious = (period: Period): string => {
  const days = daysIn(period);
  return days === 1 ? 'The day before' : `The ${formatCount(days)} days before`;
};

/** The columns have bars if `largest`, the highest revenue, is provided. */
const soldColumns = (currency: string, largest?: number): Columns<Sold> => ({
  Sales: number(({ purchases }) => formatCount(purchases)),
  Revenue: number(
    ({ amount }) =>
      html`${formatMoney(amount, currency)}${largest !== undefined && shareBar(amount, largest)}`,
  ),
});

function gameList(view: FiguresView): Html {
  const { query, report, page } = view;
  const { games } = report;
  if (games.length === 0) return html`<p class="empty">${noMore('games', page === 1)}</p>`;
  const currency = report.chosen?.currency;
  const shown = games.slice(0, RANKED_GAMES_ON_A_PAGE);
  const sold = shown.filter(({ purchases }) => purchases > 0);
  const unsold = shown.filter(({ purchases }) => purchases === 0);
  return html`<section class="stack" aria-labelledby="games">
    ${
      currency !== undefined &&
      sold.length > 0 &&
      html`<div class="head">
          <h2 id="games">${query.game === undefined ? 'By game' : 'This game'}</h2>
          <div class="buttons">${csvLink(query, 'game')}</div>
        </div>
        ${table('Games by revenue', gameColumns(view, currency, sold[0]!.amount), sold)}`
    }
    ${
      unsold.length > 0 &&
      html`<details ${sold.length === 0 && page > 1 && html` open`}>
        <summary ${sold.length === 0 && html` id="games"`}>
          ${unsold.length === 1 ? '1 game' : `${unsold.length} games`} without
          sales${currency !== undefined && ` in ${currency}`}
        </summary>
        <ul class="plain">
          ${unsold.map(
            ({ id, title }) =>
              html`<li>
                <a href="${urlWith(query, { game: String(id) })}">${title}</a>
                <a href="${buyersPath(id)}">Buyers<span class="hidden"> of ${title}</span></a>
              </li>`,
          )}
        </ul>
      </details>`
    }
    ${pageLinks({
      Back: page > 1 && urlWith(query, { page: String(page - 1) }),
      More: games.length > RANKED_GAMES_ON_A_PAGE && urlWith(query, { page: String(page + 1) }),
    })}
  </section>`;
}

const gameColumns = (
  { query, report }: FiguresView,
  currency: string,
  largest: number,
): Columns<GameSold> => ({
  Game: ({ id, title }) =>
    query.game === undefined ? html`<a href="${urlWith(query, { game: String(id) })}">${title}</a>` : title,
  ...soldColumns(currency, largest),
  'Keys claimed': ({ id }) => claimedShare(report.keys.get(id)),
  More: actions(({ id, title }) => [
    linkButton(
      withQuery(SALES_PATH, {
        game: String(id),
        range: query.range ?? '30d',
        from: query.from,
        to: query.to,
      }),
      'Sales',
      `of ${title}`,
    ),
    linkButton(buyersPath(id), 'Buyers', `of ${title}`),
  ]),
});

function claimedShare({ keys, claimed }: Pick<Recent, 'keys' | 'claimed'> = { keys: 0, claimed: 0 }): Html {
  if (keys === 0) return muted('No keys');
  return html`${Math.round((claimed / keys) * 100)}%
    <small>${formatCount(claimed)} of ${formatCount(keys)}</small>`;
}

function sourceList({ query, report: { sources } }: FiguresView, currency: string): Html {
  if (sources.length === 0) return html``;
  const rest = sources.slice(SOURCES_SHOWN);
  const other = { source: `${rest.length} other sources`, purchases: 0, amount: 0 };
  for (const { purchases, amount } of rest) {
    other.purchases += purchases;
    other.amount += amount;
  }
  const shown = [...sources.slice(0, SOURCES_SHOWN), ...(rest.length > 0 ? [other] : [])];
  const largest = Math.max(...shown.map(({ amount }) => amount));
  return html`<section class="stack" aria-labelledby="sources">
    <div class="head">
      <h2 id="sources">By source</h2>
      <div class="buttons">${csvLink(query, 'source')}</div>
    </div>
    ${table('Sources by revenue', { Source: ({ source }) => inWords(source), ...soldColumns(currency, largest) }, shown)}
  </section>`;
}

const notes = ({ current, previous }: Report): Html =>
  html`<p class="muted">
    ${
      (current.isSample || previous.isSample) &&
      `Refunds, sources and claimed keys cover only the newest ${formatCount(MAX_RECENT)} sales of a period. `
    }Days
    are in UTC. Sales and revenue include only completed purchases: a refund is subtracted on the day of the
    purchase. A bundle counts as a sale of each of its games, among which its price is split. A key that came
    with a purchase counts as claimed once a player has added it to an account.
  </p>`;
