import { Controller, Get, Post } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { ApiError, apiError } from '../../platform/errors/api-error';
import { Form, withQuery } from '../../platform/input/form';
import { KeyPages } from '../../platform/server/key-pages';
import { ListStreams } from '../../platform/output/list-streams';
import { readInteger } from '../../platform/input/readers';
import { CreatedKeysService, MAX_UNCLAIMED } from '../../purchases/keys/created-keys.service';
import { MAX_NEW_KEYS, MAX_LABEL_CHARACTERS } from '../../purchases/keys/download-key.dto';
import {
  FilteredKeysService,
  KEY_STATES,
  type KeyFilter,
  type KeyState,
  type ListedKey,
  MAX_REVOKED,
} from '../../purchases/keys/filtered-keys.service';
import { seeOther } from '../layout/layout';
import { FormFields, PageQuery, Pages, PathId } from '../layout/page';
import { formatCount } from '../layout/components';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import { type Cell, CsvResponse } from '../sales/csv';
import { keysPath } from '../sales/sales-paths';
import { KEYS_ON_A_PAGE, type KeysDraft, keysPage, NO_KEYS, revokeAllPage, revokePage } from './keys.page';

/** The download keys of a game without a purchase, for users who can edit the game. */
@Pages()
@SignedIn()
@Controller('user/settings/games/:game_id')
export class GameKeysController {
  constructor(
    private readonly keys: CreatedKeysService,
    private readonly filtered: FilteredKeysService,
    private readonly lists: ListStreams,
    private readonly pages: KeyPages,
  ) {}

  @Get('keys')
  list(
    @PathId('game_id') game_id: number,
    @PageQuery() query: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    return this.show(visitor, game_id, query);
  }

  @Get('keys.csv')
  download(
    @PathId('game_id') game_id: number,
    @PageQuery() query: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const rows = this.filtered.slices(game_id, visitor.user.id, readFilter(query));
    return new CsvResponse(this.lists, `keys-of-game-${game_id}.csv`, this.cells, rows);
  }

  @Post('keys')
  async create(
    @PathId('game_id') game_id: number,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const draft = readDraft(form);
    const count = readInteger(draft.count);
    const again = (problems: KeysDraft['problems']) =>
      this.show(visitor, game_id, undefined, { ...draft, problems });
    if (typeof count !== 'number' || count < 1 || count > MAX_NEW_KEYS)
      return again({ count: `Enter a number from 1 to ${MAX_NEW_KEYS}.` });
    if ([...draft.label].length > MAX_LABEL_CHARACTERS)
      return again({ label: `The label can have at most ${MAX_LABEL_CHARACTERS} characters.` });
    try {
      const request = { game_id, count, label: draft.label || undefined };
      const { download_keys: created } = await this.keys.create(request, visitor.by);
      const [from, to] = [String(created[0]!.id), String(created.at(-1)!.id)];
      return seeOther(withQuery(keysPath(game_id), { from, to }), { first_key: from });
    } catch (error) {
      if (!(error instanceof ApiError) || error.statusCode !== 400) throw error;
      return again({ count: `A game can have at most ${formatCount(MAX_UNCLAIMED)} unclaimed keys.` });
    }
  }

  @Get('keys/revoke')
  async confirmAll(
    @PathId('game_id') game_id: number,
    @PageQuery() query: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const filter = readFilter(query);
    const found = await this.filtered.countLive(game_id, visitor.user.id, filter);
    if (found.to === null) return seeOther(keysPath(game_id), { message: 'There are no keys to revoke.' });
    return revokeAllPage(visitor, game_id, found, filter);
  }

  @Post('keys/revoke')
  async revokeAll(
    @PathId('game_id') game_id: number,
    @FormFields() form: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const filter = readFilter(form);
    const states: KeyState[] = filter.state
      ? [filter.state]
      : ['unclaimed', ...(form.isChecked('claimed') ? (['claimed'] as const) : [])];
    const count = await this.filtered.revokeAll(game_id, filter, states, visitor.by);
    const more = count === MAX_REVOKED ? ' There may be more: repeat this to revoke them.' : '';
    const words = count === 1 ? '1 key was revoked.' : `${formatCount(count)} keys were revoked.`;
    return seeOther(keysPath(game_id), { message: words + more });
  }

  @Get('keys/:download_key_id/revoke')
  async confirm(
    @PathId('game_id') game_id: number,
    @PathId('download_key_id') key_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const { title, keys } = await this.filtered.page(
      game_id,
      visitor.user.id,
      { from: key_id, to: key_id },
      1,
    );
    if (!keys[0] || keys[0].revoked) throw apiError(404, 'invalid download key');
    return revokePage(visitor, game_id, title, keys[0]);
  }

  @Post('keys/:download_key_id/revoke')
  async revoke(
    @PathId('game_id') game_id: number,
    @PathId('download_key_id') key_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    await this.keys.revoke({ game_id, download_key_id: key_id }, visitor.by);
    return seeOther(keysPath(game_id), { message: 'The key was revoked.' });
  }

  private readonly cells: Record<string, (key: ListedKey) => Cell> = {
    ...CELLS,
    url: ({ key, revoked }) => (revoked ? null : this.pages.url(key)),
  };

  private async show(visitor: SignedInVisitor, game_id: number, query?: Form, draft: KeysDraft = NO_KEYS) {
    const filter = query ? readFilter(query) : {};
    const limit = filter.from === undefined ? KEYS_ON_A_PAGE + 1 : MAX_NEW_KEYS;
    const [{ title, keys, searched_to }, labels] = await Promise.all([
      this.filtered.page(game_id, visitor.user.id, filter, limit),
      this.filtered.labels(game_id, visitor.user.id),
    ]);
    const hasLinks = this.pages.url('key') !== null;
    const shown = {
      game_id,
      title,
      labels,
      searched_to,
      keys: keys.map((key) => ({ ...key, url: this.pages.url(key.key) })),
      hasLinks,
      showsLinks: hasLinks && query?.text('show') === 'links',
      filter,
    };
    return keysPage(visitor, shown, draft);
  }
}

const readDraft = (form: Form): KeysDraft => ({
  count: form.text('count')?.trim() ?? '',
  label: form.title('label'),
  problems: {},
});

function readFilter(query: Form): KeyFilter {
  const id = (name: string) => {
    const value = readInteger(query.text(name) ?? '');
    return typeof value === 'number' ? value : undefined;
  };
  return {
    from: id('from'),
    to: id('to'),
    label: query.text('label') || undefined,
    state: KEY_STATES.find((state) => state === query.text('state')),
  };
}

const CELLS: Record<string, (key: ListedKey) => Cell> = {
  id: ({ id }) => id,
  key: ({ key }) => key,
  label: ({ label }) => label,
  created_at: ({ created_at }) => modernTimestamp(created_at),
  status: ({ revoked, owner }) => (revoked ? 'revoked' : owner === null ? 'unclaimed' : 'claimed'),
  claimed_by: ({ owner }) => owner,
  email: ({ email }) => email,
  downloads: ({ downloads }) => downloads,
};
