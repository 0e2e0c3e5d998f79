import { Injectable } from '@nestjs/common';
import { StoreLinks } from '../../platform/config/store-links';
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
import { html, type Html } from '../layout/html';
import { GAMES_PATH, type Page, gamePath } from '../layout/layout';
import { alert, confirmation, done } from '../layout/components';
import type { SignedInVisitor } from '../layout/visitor';
import type { GameDraft, GameField } from './game-draft';
import { GameFrame } from './game-frame';
import type { OwnGame } from '../../games/editing/own-games.service';

interface Problem {
  problems?: Problems<GameField>;
  problem?: string;
}

/** The forms of a game, for users who can edit it. */
@Injectable()
export class GamePage {
  constructor(
    private readonly frame: GameFrame,
    private readonly links: StoreLinks,
  ) {}

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
    return this.frame.page(
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
        details: html`${problem && alert(problem)}
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
}

const SLUG_CHANGE =
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
