import { Controller, Get, Req } from '@nestjs/common';
import type { Request } from 'express';
import { SignedIn } from '../../auth/access';
import { Clock } from '../../platform/config/clock';
import { apiError } from '../../platform/http/api-error';
import { formatMoney } from '../../platform/formats/money';
import { queryOf, withQuery } from '../../platform/http/form';
import { html, type Html } from '../layout/html';
import { Layout } from '../layout/layout';
import { Pages } from '../layout/page';
import { idOf, pageLinks, pageOf, table } from '../layout/parts';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { chart, type Column, salesOf } from './chart';
import { columnsOf, nameOf, type Period, periodOf, RANGES, shortNameOf, UNITS } from './period';
import {
  type Figures,
  GAMES_ON_A_PAGE,
  type GameSold,
  MAX_KEYS,
  SalesReportService,
} from './sales-report.service';

export const PATH = '/user/settings/sales';

const FIELDS = ['range', 'by', 'currency', 'game', 'page'] as const;

/** The query of the page's address. */
type Asked = Partial<Record<(typeof FIELDS)[number], string>>;

/** The page of what was sold, over time and by game. */
@Pages()
@Controller('user/settings/sales')
export class SalesPageController {
  constructor(
    private readonly sales: SalesReportService,
    private readonly clock: Clock,
    private readonly layout: Layout,
  ) {}

  @Get()
  @SignedIn()
  async show(@Req() req: Request, @CurrentVisitor() visitor: SignedInVisitor) {
    const query = queryOf(req);
    const asked: Asked = Object.fromEntries(FIELDS.map((name) => [name, query.text(name)]));
    const game_id = asked.game === undefined ? null : idOf(asked.game);
    const page = pageOf(asked.page);
    const now = new Date(this.clock.now());
    let period = periodOf(asked.range, asked.by, now);
    const only = { game_id, currency: asked.currency };
    let figures = await this.sales.figures(visitor.user.id, period, only);
    // A seller without recent sales sees older ones.
    if (asked.range === undefined && figures.totals.length === 0) {
      period = periodOf('all', asked.by, now);
      figures = await this.sales.figures(visitor.user.id, period, only);
    }
    const { currency } = figures;
    const games = await this.sales.rankedGames(visitor.user.id, period, { game_id, currency, page });
    if (game_id !== null && games.length === 0) throw apiError(404, 'You have no such game.');
    const here: Asked = { ...asked, page: undefined, range: period.range, by: period.unit };
    const title = game_id === null ? 'Sales' : games[0]!.title;
    return this.layout.show(visitor, {
      section: PATH,
      title: game_id === null ? 'Sales' : `Sales of ${title}`,
      main: html`<div class="head">
          <h1>${game_id === null ? 'Sales' : html`Sales of ${title}`}</h1>
          ${
            game_id !== null &&
            html`<div class="buttons">
              <a class="button quiet" href="${address(here, { game: undefined })}">All games</a>
              <a class="button quiet" href="${PATH}/${game_id}/buyers">Buyers</a>
            </div>`
          }
        </div>
        ${choices(here, period)} ${currencies(here, figures)} ${chartCard(figures, period, title)}
        ${games.length === 0 ? noGames(page) : ranking(here, games, currency, page)}`,
    });
  }
}

const address = (asked: Asked, changed: Asked): string => withQuery(PATH, { ...asked, ...changed });

const choice = (href: string, label: string, chosen: boolean): Html =>
  html`<a href="${href}" ${chosen && html` aria-current="true"`}>${label}</a> `;

const choices = (asked: Asked, { range, unit, units }: Period): Html =>
  html`<div class="choices">
    <nav class="choice" aria-label="Time">
      ${Object.entries(RANGES).map(([key, { name }]) => choice(address(asked, { range: key }), name, key === range))}
    </nav>
    ${
      units.length > 1 &&
      html`<nav class="choice" aria-label="Columns">
        ${units.map((name) => choice(address(asked, { by: name }), UNITS[name], name === unit))}
      </nav>`
    }
  </div>`;

/** One link a currency: amounts in different currencies are never added up. */
const currencies = (asked: Asked, { totals, currency }: Figures): Html =>
  html`${
    totals.length > 0 &&
    html`<nav class="totals" aria-label="Currency">
      ${totals.map(
        (sold) =>
          html`<a
            href="${address(asked, { currency: sold.currency })}"
            ${sold.currency === currency && html` aria-current="true"`}
            ><strong>${formatMoney(sold.amount, sold.currency)}</strong
            ><span>${sold.currency} · ${salesOf(sold.purchases)}</span></a
          > `,
      )}
    </nav>`
  }`;

/** The chart, and its figures as a table. */
function chartCard({ currency, columns: sold }: Figures, period: Period, title: string): Html {
  if (currency === undefined) return html`<p class="empty">Nothing was sold in this time.</p>`;
  const first = period.range === 'all' ? [...sold.keys()].sort()[0]! : period.from;
  const columns: Column[] = columnsOf(period, first).map((day) => ({
    name: nameOf(day, period.unit),
    short: shortNameOf(day, period),
    ...(sold.get(day) ?? { purchases: 0, amount: 0 }),
  }));
  const label = `${title}: revenue in ${currency} and number of sales, ${UNITS[period.unit].toLowerCase()}`;
  const rows = columns.toReversed().map(
    ({ name, purchases, amount }) =>
      html`<tr>
        <th scope="row">${name}</th>
        <td class="number">${purchases.toLocaleString('en-US')}</td>
        <td class="number">${formatMoney(amount, currency)}</td>
      </tr>`,
  );
  return html`<figure class="card stack">
    ${chart(columns, currency, label)}
    <details>
      <summary>Show as table</summary>
      ${table(label, ['Time (UTC)', { numbers: 'Sales' }, { numbers: 'Revenue' }], rows, '')}
    </details>
  </figure>`;
}

const noGames = (page: number): Html =>
  html`<p class="empty">${page === 1 ? 'You have no games yet.' : 'There are no more.'}</p>`;

const ranking = (asked: Asked, games: GameSold[], currency: string | undefined, page: number): Html =>
  html`<section class="stack" aria-labelledby="ranking">
    <h2 id="ranking">${asked.game === undefined ? 'Games, most earned first' : 'In this time'}</h2>
    ${table(
      'Games by what they earned',
      ['Game', { numbers: 'Sales' }, { numbers: 'Revenue' }, 'Keys claimed', { buttons: 'More' }],
      games.slice(0, GAMES_ON_A_PAGE).map((game) => rankedGame(asked, game, currency)),
    )}
    ${pageLinks({
      Back: page > 1 && address(asked, { page: String(page - 1) }),
      More: games.length > GAMES_ON_A_PAGE && address(asked, { page: String(page + 1) }),
    })}
    <p class="muted">
      Sales and revenue are of completed purchases; refunds are taken off the day of the purchase. The price
      of a bundle is split among its games. Keys are those that came with purchases, and count as claimed once
      somebody has them in an account.
    </p>
  </section>`;

const rankedGame = (asked: Asked, game: GameSold, currency: string | undefined): Html =>
  html`<tr>
    <th scope="row">
      ${
        asked.game === undefined
          ? html`<a href="${address(asked, { game: String(game.id) })}">${game.title}</a>`
          : game.title
      }
    </th>
    <td class="number" data-label="Sales">${game.purchases.toLocaleString('en-US')}</td>
    <td class="number" data-label="Revenue">
      ${currency === undefined ? '–' : formatMoney(game.amount, currency)}
    </td>
    <td data-label="Keys claimed">${claimed(game)}</td>
    <td class="actions">
      <a class="button quiet" href="${PATH}/${game.id}/buyers"
        >Buyers<span class="hidden"> of ${game.title}</span></a
      >
    </td>
  </tr>`;

function claimed({ keys, claimed }: GameSold): Html {
  if (keys === 0) return html`<span class="muted">no keys</span>`;
  const share = Math.round((claimed / keys) * 100);
  return html`${share}%
    <small>${claimed} of ${keys === MAX_KEYS ? 'the newest ' : ''}${keys.toLocaleString('en-US')}</small>`;
}
