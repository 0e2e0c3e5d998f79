import { html, type Html } from '../layout/html';
import { gamePath } from '../layout/layout';
import { SALES_VIEWS } from './sales-paths';

const TABS = {
  overview: ['Overview', (id: number) => gamePath(id)],
  details: ['Details', (id: number) => gamePath(id, 'details')],
  files: ['Files', (id: number) => gamePath(id, 'files')],
  builds: ['Builds', (id: number) => gamePath(id, 'builds')],
  keys: ['Download keys', (id: number) => gamePath(id, 'keys')],
  ...SALES_VIEWS,
} as const;

export type GameTab = keyof typeof TABS;

/** The tabs of a game's pages. */
export const gameTabs = (game_id: number, current: GameTab): Html =>
  html`<nav aria-label="Game" class="tabs game">
    <ul>
      ${Object.entries(TABS).map(
        ([tab, [label, pathOf]]) =>
          html`<li>
            <a href="${pathOf(game_id)}" ${tab === current && html` aria-current="page"`}>${label}</a>
          </li> `,
      )}
    </ul>
  </nav>`;
