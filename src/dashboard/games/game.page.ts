import { Injectable } from '@nestjs/common';
import { StoreLinks } from '../../platform/config/store-links';
import { formatMoney } from '../../platform/formats/money';
import { formatSize } from '../../platform/formats/sizes';
import { withQuery } from '../../platform/input/form';
import type { GameSaleRow } from '../../purchases/sales/game-sales.service';
import type { UploadRow } from '../../uploads/upload.row';
import { Covers } from '../layout/covers';
import {
  changeForm,
  checkbox,
  described,
  field,
  hasProblems,
  problemAt,
  type Problems,
  selectField,
} from '../layout/fields';
import { html, type Html, type Part } from '../layout/html';
import { formToken, GAMES_PATH, type Page, SALES_PATH, gamePath } from '../layout/layout';
import {
  alert,
  type Columns,
  confirmation,
  formatCount,
  day,
  done,
  muted,
  number,
  tableOr,
  tag,
  unlabeled,
} from '../layout/components';
import { platformNames } from '../layout/platforms';
import type { SignedInVisitor } from '../layout/visitor';
import { buyerLink, statusBadge } from '../sales/sales.page';
import type { GameDraft, GameField } from './game-draft';
import { gameTabs, type GameTab } from '../sales/game-tabs';
import { gameState } from './games.page';
import type { GameSales, OwnGame } from './games-report.service';

/** Days that the figures of the overview cover. */
export const RECENT_DAYS = 30;
export const SALES_SHOWN = 5;
const FILES_SHOWN = 10;

export interface Overview {
  sold: GameSales[];
  sales: GameSaleRow[];
  uploads: UploadRow[];
}

interface Problem {
  problems?: Problems<GameField>;
  problem?: string;
}

/** The pages of a game, for users who can edit it. */
@Injectable()
export class GamePage {
  constructor(
    private readonly links: StoreLinks,
    private readonly covers: Covers,
  ) {}

  overview(visitor: SignedInVisitor, game: OwnGame, { sold, sales, uploads }: Overview): Page {
    const { id, title, cover_url, short_text } = game;
    const figures: [name: string, value: Part, about: string][] = [
      ['Sales', formatCount(sold.reduce((sum, one) => sum + one.purchases, 0)), `last ${RECENT_DAYS} days`],
      ['Revenue', formatSums(sold), `last ${RECENT_DAYS} days`],
      ['Earnings', formatSums(listEarnings(game)), `${formatCount(game.purchases_count)} purchases in all`],
      ['Downloads', formatCount(game.downloads_count), 'in all'],
      ['Views', formatCount(game.views_count), 'in all'],
    ];
    return this.page(game, 'overview', (notice) => [
      done(notice.message),
      this.nextSteps(visitor, game, uploads.length > 0),
      html`<section class="card about-game">
          ${this.covers.show(title, cover_url)}
          <div class="stack">
            <p>${short_text ?? muted('No short text yet.')}</p>
            <p class="muted">
              ${game.min_price === 0 ? 'Free' : `From ${formatMoney(game.min_price, 'USD')}`}
            </p>
          </div>
        </section>
        <dl class="figures">
          ${figures.map(
            ([name, value, about]) =>
              html`<div>
                <dt>${name}</dt>
                <dd><strong>${value}</strong> <small>${about}</small></dd>
              </div> `,
          )}
        </dl>
        <section class="stack" aria-labelledby="newest-sales">
          <div class="head">
            <h2 id="newest-sales">Newest sales</h2>
            <a href="${withQuery(SALES_PATH, { game: String(id) })}">All sales</a>
          </div>
          ${tableOr('There are no sales yet.', 'Newest sales', SALE_COLUMNS, sales)}
        </section>
        <section class="stack" aria-labelledby="files">
          <div class="head">
            <h2 id="files">Files</h2>
            <a href="${gamePath(id, 'files')}">All files</a>
          </div>
          ${tableOr('There are no files yet.', 'Files', FILE_COLUMNS, uploads.slice(0, FILES_SHOWN))}
        </section>`,
    ]);
  }

  /** A page of the game with its name and tabs. */
  page(
    game: OwnGame,
    tab: GameTab,
    main: (notice: { message?: string }) => Part,
    more: Partial<Page> = {},
  ): Page {
    const { id, title, owner_name, slug } = game;
    return {
      section: GAMES_PATH,
      tables: tab !== 'details',
      title: tab === 'overview' ? title : `${TITLES[tab] ?? tab} of ${title}`,
      main: (notice) =>
        html`<div class="head">
            <div>
              <h1>${title}</h1>
              <p class="muted">${gameState(game)}</p>
            </div>
            ${this.links.exist && html`<a class="button quiet" href="${this.links.game(owner_name, slug)}">Store page</a>`}
          </div>
          ${gameTabs(id, tab)} ${main(notice)}`,
      ...more,
    };
  }

  newGame(visitor: SignedInVisitor, draft: GameDraft, { problems = {}, problem }: Problem = {}): Page {
    return {
      section: GAMES_PATH,
      title: 'New game',
      status: hasProblems(problems) || problem ? 400 : 200,
      main: html`<h1>New game</h1>
        <p class="lead">Only you can see the game until you publish it. You can change everything later.</p>
        ${problem && alert(problem)}
        ${changeForm(
          visitor,
          { action: GAMES_PATH, button: 'Create game', back: GAMES_PATH },
          html`${titleField(draft, problems)} ${shortTextField(draft, problems)}
          ${priceField(draft, problems)}
          ${this.slugField(visitor.user.username, draft, problems, 'Leave it empty to derive it from the title.')}`,
        )}`,
    };
  }

  details(
    visitor: SignedInVisitor,
    game: OwnGame,
    draft: GameDraft,
    { problems = {}, problem }: Problem = {},
  ): Page {
    const status = hasProblems(problems) || problem ? 400 : 200;
    const form = changeForm(
      visitor,
      { action: gamePath(game.id, 'details'), button: 'Save' },
      html`${titleField(draft, problems)} ${shortTextField(draft, problems)}
        ${this.slugField(game.owner_name, draft, problems, SLUG_CHANGE)}
        <div class="field">
          <label for="cover_url">URL of the cover image <small>optional</small></label>
          <input
            id="cover_url"
            name="cover_url"
            type="url"
            value="${draft.cover_url}"
            maxlength="2000"
            autocomplete="off"
            placeholder="https://cdn.example.com/cover.png"
            ${described('cover_url', problems.cover_url, 'cover_url-help')}
          />
          ${problemAt('cover_url', problems.cover_url)}
          <small id="cover_url-help"
            >630 × 500 pixels. Pages here show images of hosts that the store allows.</small
          >
        </div>
        ${selectField('type', 'Type', TYPES, draft.type, problems.type)} ${priceField(draft, problems)}
        ${selectField('visibility', 'Who can see the published game', VISIBILITIES, draft.visibility, problems.visibility)}
        ${checkbox('published', draft.published, html`Published`)}`,
    );
    return this.page(
      game,
      'details',
      (notice) =>
        html`${done(notice.message)} ${problem && alert(problem)} ${form}
        ${
          game.owned &&
          html`<p>
            <a class="button quiet danger" href="${gamePath(game.id, 'delete')}">Delete this game</a>
          </p>`
        }`,
      { status },
    );
  }

  deletion(visitor: SignedInVisitor, { id, title }: OwnGame, problem?: string): Page {
    return {
      ...confirmation(visitor, {
        section: GAMES_PATH,
        title: 'Delete a game',
        question: `Delete ${title}?`,
        facts: html`${problem && alert(problem)}
          <p>
            Its files and builds are deleted too, and it is removed from players’ collections. This can’t be
            undone. A game with purchases or download keys can’t be deleted: make it private instead.
          </p>`,
        action: gamePath(id, 'delete'),
        button: 'Delete the game',
        back: gamePath(id, 'details'),
      }),
      status: problem === undefined ? 200 : 400,
    };
  }

  private slugField(
    owner: string,
    { slug }: GameDraft,
    { slug: problem }: Problems<GameField>,
    help: string,
  ): Html {
    return html`<div class="field">
      <label for="slug">Short name in the URL</label>
      <input
        id="slug"
        name="slug"
        value="${slug}"
        maxlength="100"
        autocomplete="off"
        autocapitalize="none"
        spellcheck="false"
        ${described('slug', problem, 'slug-help')}
      />
      ${problemAt('slug', problem)}
      <small id="slug-help">It follows ${this.links.game(owner, '')} in the URL. ${help}</small>
    </div>`;
  }

  /** What is left to do before players see the game. */
  private nextSteps(visitor: SignedInVisitor, game: OwnGame, hasFiles: boolean): Html {
    const isShown = game.published_at !== null && game.visibility !== 'private';
    const action = gamePath(game.id, 'publish');
    if (isShown)
      return html`<form method="post" action="${action}" class="row">
        ${formToken(visitor)}
        <button class="quiet" name="published" value="no">Unpublish</button>
      </form>`;
    return html`<section class="card fresh stack" aria-labelledby="next">
      <h2 id="next">Only editors can see this game</h2>
      <p>
        ${
          hasFiles
            ? 'It has files. Publish it when its details are complete.'
            : html`Upload its <a href="${gamePath(game.id, 'files')}">files</a>, complete its
                <a href="${gamePath(game.id, 'details')}">details</a>, and publish it.`
        }
      </p>
      <form method="post" action="${action}">
        ${formToken(visitor)}
        <button ${!hasFiles && html` class="quiet"`} name="published" value="yes">Publish</button>
      </form>
    </section>`;
  }
}

const TITLES: Partial<Record<GameTab, string>> = { details: 'Details', files: 'Files', builds: 'Builds' };

export const SLUG_CHANGE =
  'If you change it, links to the old URL stop working, and so do launchers and upload commands that name the game: nothing redirects.';

const TYPES = [
  ['default', 'Download'],
  ['html', 'HTML, played in the browser'],
  ['flash', 'Flash'],
  ['unity', 'Unity Web Player'],
  ['java', 'Java applet'],
] as const;

const VISIBILITIES = [
  ['public', 'Everyone'],
  ['restricted', 'Owners of its download keys'],
  ['private', 'Only its editors'],
] as const;

const titleField = ({ title }: GameDraft, { title: problem }: Problems<GameField>): Html =>
  field({ id: 'title', label: 'Title', value: title, required: true, maxlength: 500, problem });

const shortTextField = ({ short_text }: GameDraft, { short_text: problem }: Problems<GameField>): Html =>
  html`<div class="field">
    <label for="short_text">Short text <small>optional</small></label>
    <textarea
      id="short_text"
      name="short_text"
      class="prose"
      rows="2"
      maxlength="1000"
      ${described('short_text', problem)}
    >
${short_text}</textarea>
    ${problemAt('short_text', problem)}
  </div>`;

const priceField = ({ price }: GameDraft, { price: problem }: Problems<GameField>): Html =>
  field({
    id: 'price',
    label: html`Minimum price in US dollars <small>0 for a free game</small>`,
    value: price,
    inputmode: 'decimal',
    required: true,
    maxlength: 20,
    problem,
  });

const listEarnings = ({ earnings }: OwnGame): GameSales[] =>
  earnings.map((earning) => ({
    currency: earning.slice(0, 3),
    purchases: 0,
    amount: Number(earning.slice(3)),
  }));

/** `$5.00, €3.00 and 2 more` currencies. */
function formatSums(sums: GameSales[]): string {
  if (sums.length === 0) return formatMoney(0, 'USD');
  const shown = sums.slice(0, 2).map(({ amount, currency }) => formatMoney(Math.round(amount), currency));
  return shown.join(', ') + (sums.length > 2 ? ` and ${sums.length - 2} more` : '');
}

const SALE_COLUMNS: Columns<GameSaleRow> = {
  Sale: ({ id, created_at }) =>
    html`<a href="${SALES_PATH}/${id}">Sale ${id}</a> <small>${day(created_at)}</small>`,
  Buyer: unlabeled(({ id, email, buyer }) => buyerLink({ id, email, username: buyer?.username ?? null })),
  Price: unlabeled(number(({ amount, currency }) => formatMoney(amount, currency))),
  Status: unlabeled(({ status }) => statusBadge(status)),
};

export const listPlatforms = (traits: readonly string[]): Part => {
  const names = platformNames(traits);
  return names.length === 0 ? muted('Any') : names.join(', ');
};

const FILE_COLUMNS: Columns<UploadRow> = {
  File: ({ filename, display_name, traits }) =>
    html`${display_name ?? filename} ${traits.includes('demo') && tag('Demo')}`,
  Platforms: unlabeled(({ traits }) => listPlatforms(traits)),
  Size: unlabeled(number(({ size }) => (size === null ? muted('External') : formatSize(size)))),
  Updated: unlabeled(({ updated_at }) => day(updated_at)),
};
