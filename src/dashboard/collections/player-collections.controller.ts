import { Controller, Get, Post } from '@nestjs/common';
import { SignedIn } from '../../auth/access/access';
import { CollectionGamesListService } from '../../collections/collection-games-list.service';
import { CollectionGamesService } from '../../collections/collection-games.service';
import { MAX_COLLECTION_TITLE_CHARACTERS } from '../../collections/collection.dto';
import { CollectionsService } from '../../collections/collections.service';
import {
  type EditableCollection,
  ProfileCollectionsService,
} from '../../collections/profile-collections.service';
import { ApiError, apiError } from '../../platform/errors/api-error';
import { parseCursor } from '../../platform/input/cursor';
import { Form, withQuery } from '../../platform/input/form';
import { LibraryService } from '../../purchases/library/library.service';
import { type FormResult, seeOther } from '../layout/layout';
import { FormFields, PageQuery, Pages, PathId } from '../layout/page';
import { parseId, parsePage } from '../layout/components';
import { CurrentVisitor, type SignedInVisitor } from '../layout/visitor';
import {
  type CollectionDraft,
  collectionPath,
  COLLECTIONS_PATH,
  CollectionsPage,
  collectionsPath,
  EMPTY_DRAFT,
  MAX_FIND,
} from './collections.page';

const MOVES = ['up', 'down', 'top'] as const;

@Pages()
@SignedIn()
@Controller('user/settings/collections')
export class PlayerCollectionsController {
  constructor(
    private readonly own: ProfileCollectionsService,
    private readonly collections: CollectionsService,
    private readonly games: CollectionGamesListService,
    private readonly entries: CollectionGamesService,
    private readonly library: LibraryService,
    private readonly page: CollectionsPage,
  ) {}

  @Get()
  async list(@PageQuery() query: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const after = parseCursor(query.text('after'));
    return this.page.list(visitor, await this.own.listCollections(visitor.user.id, { after }), after);
  }

  @Get('new')
  newForm(@CurrentVisitor() visitor: SignedInVisitor) {
    return this.page.create(visitor, EMPTY_DRAFT);
  }

  @Post()
  async create(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const draft = readDraft(form);
    const problem = problemOfTitle(draft.title);
    if (problem !== undefined) return this.page.create(visitor, draft, { status: 400, problem });
    try {
      const { collection } = await this.collections.create(visitor.user.id, {
        title: draft.title,
        private: draft.isPrivate,
      });
      if (draft.isOnProfile) await this.own.setOnProfile(visitor.user.id, collection.id, true);
      return seeOther(collectionPath(collection.id), { message: `“${collection.title}” was created.` });
    } catch (error) {
      return this.page.create(visitor, draft, fullOr(error));
    }
  }

  @Get('add')
  async addForm(@PageQuery() query: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    return this.chooseCollection(visitor, parseId(query.text('game_id') ?? ''));
  }

  @Post('add')
  async add(@FormFields() form: Form, @CurrentVisitor() visitor: SignedInVisitor) {
    const user_id = visitor.user.id;
    const game_id = parseId(form.text('game_id') ?? '');
    const chosen = form.text('collection') ?? 'new';
    const title = form.title('title');
    if (chosen !== 'new') return this.addTo(visitor, parseId(chosen), game_id);
    const again = (result: FormResult) =>
      this.chooseCollection(visitor, game_id, { collection: chosen, title }, result);
    const problem = problemOfTitle(title);
    if (problem !== undefined) return again({ status: 400, problem });
    try {
      const { collection } = await this.collections.create(user_id, { title, private: false, game_id });
      return seeOther(collectionPath(collection.id), { message: `“${collection.title}” was created.` });
    } catch (error) {
      return again(fullOr(error));
    }
  }

  @Get(':collection_id')
  async one(
    @PathId('collection_id') collection_id: number,
    @PageQuery() query: Form,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    return this.show(visitor, await this.find(visitor, collection_id), query);
  }

  @Post(':collection_id')
  async update(
    @FormFields() form: Form,
    @PathId('collection_id') collection_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const draft = readDraft(form);
    const collection = await this.find(visitor, collection_id);
    const problem = problemOfTitle(draft.title);
    if (problem !== undefined)
      return this.show(visitor, collection, new Form({}), draft, { status: 400, problem });
    await this.collections.update(visitor.user.id, {
      collection_id,
      title: draft.title,
      private: draft.isPrivate,
      on_profile: draft.isOnProfile,
    });
    return seeOther(collectionPath(collection_id), { message: 'The collection was saved.' });
  }

  @Get(':collection_id/delete')
  async confirmDeletion(
    @PathId('collection_id') collection_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    return this.page.remove(visitor, await this.find(visitor, collection_id));
  }

  @Post(':collection_id/delete')
  async delete(@PathId('collection_id') collection_id: number, @CurrentVisitor() visitor: SignedInVisitor) {
    const { title } = await this.find(visitor, collection_id);
    await this.collections.delete(visitor.user.id, collection_id);
    return seeOther(COLLECTIONS_PATH, { message: `“${title}” was deleted.` });
  }

  @Post(':collection_id/on-profile')
  async setOnProfile(
    @FormFields() form: Form,
    @PathId('collection_id') collection_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const on = form.text('on') === 'yes';
    const title = await this.own.setOnProfile(visitor.user.id, collection_id, on);
    if (title === undefined) throw noCollection();
    return seeOther(collectionsPath(parseCursor(form.text('after'))), {
      message: `“${title}” is ${on ? 'now' : 'no longer'} on your profile.`,
    });
  }

  @Post(':collection_id/games')
  async addGame(
    @FormFields() form: Form,
    @PathId('collection_id') collection_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    return this.addTo(visitor, collection_id, parseId(form.text('game_id') ?? ''));
  }

  @Post(':collection_id/games/:game_id/move')
  async move(
    @FormFields() form: Form,
    @PathId('collection_id') collection_id: number,
    @PathId('game_id') game_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    const user_id = visitor.user.id;
    const to = MOVES.find((one) => one === form.text('to'));
    await this.find(visitor, collection_id);
    const game_ids =
      to === undefined ? [] : await this.own.orderAfter(user_id, { collection_id, game_id, to });
    if (game_ids.length > 0)
      await this.entries.order(user_id, { collection_id, game_ids, remove_game_ids: [] });
    return seeOther(
      pagePath(collectionPath(collection_id), form),
      game_ids.length > 0 ? { message: 'The order was changed.' } : undefined,
    );
  }

  @Post(':collection_id/games/:game_id/remove')
  async removeGame(
    @FormFields() form: Form,
    @PathId('collection_id') collection_id: number,
    @PathId('game_id') game_id: number,
    @CurrentVisitor() visitor: SignedInVisitor,
  ) {
    await this.find(visitor, collection_id);
    await this.entries.remove(visitor.user.id, { collection_id, game_id });
    return seeOther(pagePath(collectionPath(collection_id), form), { message: 'The game was removed.' });
  }

  private async find(visitor: SignedInVisitor, collection_id: number): Promise<EditableCollection> {
    const collection = await this.own.one(visitor.user.id, collection_id);
    if (!collection) throw noCollection();
    return collection;
  }

  private async show(
    visitor: SignedInVisitor,
    collection: EditableCollection,
    query: Form,
    draft: CollectionDraft = {
      title: collection.title,
      isPrivate: collection.private,
      isOnProfile: collection.on_profile,
    },
    result: FormResult = {},
  ) {
    const user_id = visitor.user.id;
    const page = parsePage(query.text('page'));
    const find = query.text('find')?.trim().slice(0, MAX_FIND) || undefined;
    const [games, found] = [
      await this.games.titles(user_id, collection.id, page),
      find === undefined ? [] : await this.library.page(user_id, { page: 1, search: find, sort: 'title' }),
    ];
    return this.page.one(visitor, { collection, games, page, find, found, draft, result });
  }

  private async addTo(visitor: SignedInVisitor, collection_id: number, game_id: number) {
    await this.find(visitor, collection_id);
    if ((await this.own.titleOfGame(visitor.user.id, game_id)) === undefined) throw noGame();
    const { collection_game } = await this.entries.add(visitor.user.id, { collection_id, game_id });
    return seeOther(collectionPath(collection_id), {
      message: `${collection_game.game.title} is in the collection.`,
    });
  }

  private async chooseCollection(
    visitor: SignedInVisitor,
    game_id: number,
    draft?: { collection: string; title: string },
    result: FormResult = {},
  ) {
    const title = await this.own.titleOfGame(visitor.user.id, game_id);
    if (title === undefined) throw noGame();
    const collections = await this.own.listCollections(visitor.user.id, { game_id });
    const [first] = collections.filter(({ has_game }) => !has_game);
    const chosen = draft ?? { collection: first ? String(first.id) : 'new', title: '' };
    return this.page.add(visitor, { id: game_id, title }, collections, chosen, result);
  }
}

const noCollection = () => apiError(404, 'This collection doesn’t exist, or you can’t edit it.');

// Even a player who owns a private game can't view it, because its page is only for its editors.
const noGame = () => apiError(404, 'This game doesn’t exist, or it is private and can’t be in a collection.');

const readDraft = (form: Form): CollectionDraft => ({
  title: form.title('title'),
  isPrivate: form.isChecked('private'),
  isOnProfile: form.isChecked('on_profile'),
});

function problemOfTitle(title: string): string | undefined {
  if (title === '') return 'Enter a title.';
  return [...title].length > MAX_COLLECTION_TITLE_CHARACTERS
    ? `The title can have at most ${MAX_COLLECTION_TITLE_CHARACTERS} characters.`
    : undefined;
}

/** The problem of a player who has as many collections as possible. */
function fullOr(error: unknown): FormResult {
  if (!(error instanceof ApiError) || error.errors[0] !== 'too many collections') throw error;
  return { status: 400, problem: 'You have too many collections. Delete one first.' };
}

/** The page of a list that a form was on. */
function pagePath(path: string, form: Form): string {
  const page = parsePage(form.text('page'));
  return page === 1 ? path : withQuery(path, { page: String(page) });
}
