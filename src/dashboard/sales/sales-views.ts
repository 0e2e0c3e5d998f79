import { html, type Html } from '../layout/html';
import { gameTabs } from './game-tabs';
import { SALES_VIEWS } from './sales-paths';

/** Links to the other pages about the same sales; for a single game, its tabs. */
export const salesViews = (current: keyof typeof SALES_VIEWS, game?: string): Html =>
  game !== undefined
    ? gameTabs(Number(game), current)
    : html`<nav class="views" aria-label="Sales">
        <ul>
          ${Object.entries(SALES_VIEWS).map(
            ([view, [name, path]]) =>
              html`<li>
                <a href="${path()}" ${view === current && html` aria-current="page"`}>${name}</a>
              </li> `,
          )}
        </ul>
      </nav>`;
