import { gameTabs } from './game-tabs';
import { html, type Html } from '../layout/html';
import { buyersPath, figuresPath, salesPath } from './sales-paths';

const VIEWS = { Sales: salesPath, Figures: figuresPath, Buyers: buyersPath };

/** Links to the other pages about the same sales; of one game, below its tabs. */
export const salesViews = (current: keyof typeof VIEWS, game?: string): Html =>
  html`${game !== undefined && gameTabs(Number(game), current === 'Buyers' ? 'buyers' : 'sales')}
    <nav class="views" aria-label="Sales">
      <ul>
        ${Object.entries(VIEWS).map(
          ([name, path]) =>
            html`<li>
              <a href="${path(game)}" ${name === current && html` aria-current="page"`}>${name}</a>
            </li> `,
        )}
      </ul>
    </nav>`;
