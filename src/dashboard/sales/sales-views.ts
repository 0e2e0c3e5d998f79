import { html, type Html } from '../layout/html';
import { type GameTab, gameTabs } from './game-tabs';
import { buyersPath, figuresPath, salesPath } from './sales-paths';

const VIEWS = {
  sales: ['Sales', salesPath],
  figures: ['Figures', figuresPath],
  buyers: ['Buyers', buyersPath],
} as const satisfies Partial<Record<GameTab, unknown>>;

/** Links to the other pages about the same sales; of one game, its tabs. */
export const salesViews = (current: keyof typeof VIEWS, game?: string): Html =>
  game !== undefined
    ? gameTabs(Number(game), current)
    : html`<nav class="views" aria-label="Sales">
        <ul>
          ${Object.entries(VIEWS).map(
            ([view, [name, path]]) =>
              html`<li>
                <a href="${path()}" ${view === current && html` aria-current="page"`}>${name}</a>
              </li> `,
          )}
        </ul>
      </nav>`;
