import { Injectable } from '@nestjs/common';
import { StoreLinks } from '../../platform/config/store-links';
import { html, type Part } from '../layout/html';
import { GAMES_PATH, type Page } from '../layout/layout';
import { gameTabs, type GameTab } from '../sales/game-tabs';
import { gameState } from './games.page';
import type { OwnGame } from '../../games/editing/own-games.service';

const TITLES: Partial<Record<GameTab, string>> = { details: 'Details', files: 'Files', builds: 'Builds' };

/** What the pages of a game have in common: its name, its state and the tabs. */
@Injectable()
export class GameFrame {
  constructor(private readonly links: StoreLinks) {}

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
}
