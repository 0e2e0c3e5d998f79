import { Injectable } from '@nestjs/common';
import { formatSize } from '../../platform/formats/sizes';
import { withQuery } from '../../platform/input/form';
import { html, type Html, type Part } from '../layout/html';
import { formToken, type Page, gamePath } from '../layout/layout';
import {
  actions,
  type Columns,
  continuedPages,
  day,
  done,
  lastShown,
  muted,
  noMore,
  number,
  tableOr,
  tag,
  unlabeled,
} from '../layout/components';
import type { SignedInVisitor } from '../layout/visitor';
import { BUILDS_ON_A_PAGE, type ListedBuild } from '../../wharf/builds-list.service';
import { GameFrame } from './game-frame';
import type { OwnGame } from '../../games/editing/own-games.service';

const STATES: Record<ListedBuild['state'], string> = {
  started: 'Uploading',
  processing: 'Processing',
  completed: 'Completed',
  failed: 'Failed',
};

interface Shown {
  /** Limits the list to the builds of one channel. */
  channel: string | undefined;
  /** The build before the first one on the page. */
  after: number | undefined;
}

/** The page with the builds of a game's channels. */
@Injectable()
export class BuildsPage {
  constructor(private readonly frame: GameFrame) {}

  list(visitor: SignedInVisitor, game: OwnGame, builds: ListedBuild[], { channel, after }: Shown): Page {
    const path = buildsPath(game.id, channel);
    const last = lastShown(builds, BUILDS_ON_A_PAGE);
    const isFirst = after === undefined;
    const what = channel === undefined ? 'Builds, newest first' : `Builds of ${channel}, newest first`;
    return this.frame.page(
      game,
      'builds',
      (notice) =>
        html`${done(notice.message)}
          <p class="lead">
            Players download the newest published build of each channel. A hidden build is for testers who can
            edit the game.
            ${channel !== undefined && html`<a href="${buildsPath(game.id)}">Show all channels</a>`}
          </p>
          ${tableOr(noMore('builds', isFirst, 'There are no builds yet.'), what, buildColumns(visitor, game.id), builds.slice(0, BUILDS_ON_A_PAGE))}
          ${continuedPages(path, isFirst, last && String(last.id))}`,
    );
  }
}

export const buildsPath = (game_id: number, channel?: string) =>
  withQuery(gamePath(game_id, 'builds'), { channel });

const buildColumns = (visitor: SignedInVisitor, game_id: number): Columns<ListedBuild> => ({
  Channel: ({ channel_name }) => html`<a href="${buildsPath(game_id, channel_name)}">${channel_name}</a>`,
  Version: ({ version, user_version }) =>
    html`${version} ${user_version !== null && html`<small>${user_version}</small>`}`,
  State: unlabeled((build) => buildState(build)),
  Size: number(({ size }) => (size === null ? muted('none') : formatSize(size))),
  Updates: unlabeled(({ patch_size, signed }) => updateSupport(patch_size, signed)),
  Created: ({ created_at }) => day(created_at),
  Actions: actions(
    (build) => build.hidden && build.state !== 'failed' && publishForm(visitor, game_id, build),
  ),
});

function buildState({ state, hidden, is_head, error }: ListedBuild): Part {
  if (state === 'failed')
    return html`${tag(STATES.failed, 'warning')} ${error !== null && html`<small>${error}</small>`}`;
  return html`${tag(is_head ? 'Newest' : STATES[state])} ${hidden && tag('Hidden')}`;
}

/** How launchers update to a build. */
function updateSupport(patch_size: number | null, signed: boolean): Part {
  if (patch_size !== null) return html`Patch <small>${formatSize(patch_size)}</small>`;
  return signed ? 'Changed files' : muted('whole download');
}

const publishForm = (
  visitor: SignedInVisitor,
  game_id: number,
  { id, channel_name, version }: ListedBuild,
): Html =>
  html`<form method="post" action="${gamePath(game_id, 'builds')}/${id}/publish">
    ${formToken(visitor)}<button class="quiet">
      Publish<span class="hidden"> version ${version} of ${channel_name}</span>
    </button>
  </form>`;
