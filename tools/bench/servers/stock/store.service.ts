import { Injectable, NotFoundException } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Brackets, In, IsNull, LessThan, LessThanOrEqual, Not, Repository } from 'typeorm';
import { CollectionAdmin } from '../../../../src/collections/collection-admin.entity';
import { CollectionGame } from '../../../../src/collections/collection-game.entity';
import { Collection } from '../../../../src/collections/collection.entity';
import { GameAdmin } from '../../../../src/games/game-admin.entity';
import { GameEarning } from '../../../../src/purchases/game-earning.entity';
import { Game } from '../../../../src/games/game.entity';
import { DownloadKey } from '../../../../src/purchases/download-key.entity';
import { PurchaseGame } from '../../../../src/purchases/purchase-game.entity';
import { UserEmail } from '../../../../src/auth/accounts/user-email.entity';
import { Upload } from '../../../../src/uploads/upload.entity';
import { Build } from '../../../../src/wharf/build.entity';

/** The usual approach: a repository per table, and relations between rows. */
@Injectable()
export class StoreService {
  constructor(
    @InjectRepository(Game) private readonly games: Repository<Game>,
    @InjectRepository(GameAdmin) private readonly admins: Repository<GameAdmin>,
    @InjectRepository(GameEarning) private readonly earnings: Repository<GameEarning>,
    @InjectRepository(DownloadKey) private readonly keys: Repository<DownloadKey>,
    @InjectRepository(PurchaseGame) private readonly sales: Repository<PurchaseGame>,
    @InjectRepository(UserEmail) private readonly emails: Repository<UserEmail>,
    @InjectRepository(Collection) private readonly collections: Repository<Collection>,
    @InjectRepository(CollectionAdmin) private readonly collectionAdmins: Repository<CollectionAdmin>,
    @InjectRepository(CollectionGame) private readonly entries: Repository<CollectionGame>,
    @InjectRepository(Build) private readonly builds: Repository<Build>,
    @InjectRepository(Upload) private readonly uploads: Repository<Upload>,
  ) {}

  async editableGames(user_id: number) {
    const administered = await this.admins.find({ where: { user_id } });
    const games = await this.games.find({
      where: [{ user_id }, { id: In(administered.map(({ game_id }) => game_id)) }],
      relations: { user: true },
      order: { created_at: 'DESC', id: 'DESC' },
    });
    const earnings = await this.earnings.find({
      where: { game_id: In(games.map(({ id }) => id)) },
      order: { currency: 'ASC' },
    });
    return games.map((game) => ({
      ...game,
      earnings: earnings.filter(({ game_id }) => game_id === game.id),
    }));
  }

  async game(user_id: number, id: number): Promise<Game> {
    const game = await this.games
      .createQueryBuilder('g')
      .innerJoinAndSelect('g.user', 'u')
      .where({ id })
      .getOne();
    if (!game) throw new NotFoundException();
    const visible =
      (game.visibility === 'public' && game.published_at !== null) ||
      (await this.canEdit(user_id, game)) ||
      (game.visibility === 'restricted' && (await this.hasKey(user_id, id)));
    if (!visible) throw new NotFoundException();
    return game;
  }

  async ownership(user_id: number, id: number): Promise<boolean> {
    const game = await this.games.findOne({ where: { id } });
    if (!game) throw new NotFoundException();
    const owns =
      (await this.canEdit(user_id, game)) ||
      (await this.hasKey(user_id, id)) ||
      (await this.hasPurchase(user_id, id));
    if (!owns && (game.visibility !== 'public' || game.published_at === null)) throw new NotFoundException();
    return owns;
  }

  async uploadsOf(user_id: number, game_id: number) {
    const owns = await this.ownership(user_id, game_id);
    const { min_price } = await this.games.findOneByOrFail({ id: game_id });
    const all = await this.uploads.find({ where: { game_id }, order: { position: 'ASC', id: 'ASC' } });
    const mine = all.filter(({ traits }) => owns || min_price === 0 || traits.includes('demo'));
    const found = await Promise.all(mine.map((upload) => this.withBuild(upload)));
    return found.filter(({ channel_name, build }) => channel_name === null || build !== null);
  }

  async upload(user_id: number, id: number) {
    const upload = await this.uploads.findOneBy({ id });
    const [found] = upload
      ? (await this.uploadsOf(user_id, upload.game_id)).filter((one) => one.id === id)
      : [];
    if (!found) throw new NotFoundException();
    return found;
  }

  private async withBuild(upload: Upload) {
    const { game_id, channel_name } = upload;
    if (channel_name === null) return { ...upload, build: null };
    const build = await this.builds.findOne({
      where: { game_id, channel_name, state: 'completed', size: Not(IsNull()) },
      order: { id: 'DESC' },
    });
    if (!build) return { ...upload, build };
    const before = await this.builds.findOne({
      where: { game_id, channel_name, id: LessThan(build.id) },
      order: { id: 'DESC' },
    });
    const version = await this.builds.countBy({ game_id, channel_name, id: LessThanOrEqual(build.id) });
    const shown = await this.uploads.findOneOrFail({
      where: { game_id, channel_name },
      order: { id: 'ASC' },
    });
    const { file_key, size, md5_hash } = build;
    return {
      ...upload,
      file_key,
      size,
      md5_hash,
      build: {
        ...build,
        upload_id: shown.id,
        parent_build_id: before?.id ?? -1,
        version,
        updated_at: build.updated_at ?? build.created_at,
      },
    };
  }

  async ownedKeys(user_id: number, page: number, per_page: number) {
    const all = await this.keysOf(user_id);
    const keys = await all
      .orderBy('k.created_at', 'DESC')
      .addOrderBy('k.id', 'DESC')
      .offset((page - 1) * per_page)
      .limit(per_page)
      .getMany();
    // Loaded separately: a join would read the games of all keys before it limits the page.
    const games = await this.games.find({
      where: { id: In(keys.map(({ game_id }) => game_id)) },
      relations: { user: true },
    });
    const byId = new Map(games.map((game) => [game.id, game]));
    return keys.map((key) => ({
      ...key,
      updated_at: key.updated_at ?? key.created_at,
      game: byId.get(key.game_id),
    }));
  }

  async downloadKey(
    editor: number,
    game_id: number,
    given: { download_key?: string; user_id?: number; email?: string },
  ) {
    await this.editableGame(editor, game_id);
    const { download_key, user_id, email } = given;
    const query = this.keys
      .createQueryBuilder('k')
      .leftJoinAndSelect('k.user', 'user')
      .leftJoinAndSelect('k.purchase', 'p')
      .leftJoinAndSelect('p.user', 'buyer')
      .where('k.game_id = :game_id AND k.revoked_at IS NULL', { game_id });
    if (download_key !== undefined) query.andWhere('k.key = :download_key', { download_key });
    else {
      const { account, addresses } = await this.buyer(user_id, email);
      query.andWhere(
        new Brackets((or) => {
          const has = 'IN (:...addresses)';
          or.where('k.account_id = :account', { account });
          or.orWhere(`k.account_id IS NULL AND (lower_ascii(k.email) ${has} OR k.purchase_email ${has})`, {
            addresses,
          });
          if (email !== undefined)
            or.orWhere('lower_ascii(:email) IN (lower_ascii(k.email), k.purchase_email)', { email });
        }),
      );
    }
    const key = await query.orderBy('k.created_at', 'DESC').addOrderBy('k.id', 'DESC').limit(1).getOne();
    if (!key) throw new NotFoundException();
    const verifierOf = async (email?: string | null) => email && (await this.verifier(email))?.user;
    const { purchase } = key;
    const owner =
      key.user ||
      purchase?.user ||
      (await verifierOf(key.email)) ||
      (await verifierOf(purchase?.email)) ||
      undefined;
    return { ...key, owner };
  }

  async purchases(editor: number, game_id: number, given: { user_id?: number; email?: string }) {
    await this.editableGame(editor, game_id);
    const { account, addresses } = await this.buyer(given.user_id, given.email);
    const sales = await this.sales
      .createQueryBuilder('s')
      .innerJoinAndSelect('s.purchase', 'p')
      .where(`s.game_id = :game_id AND p.status = 'complete'`, { game_id })
      .andWhere('(s.user_id = :account OR s.email IN (:...addresses))', { account, addresses })
      .orderBy('p.created_at', 'DESC')
      .addOrderBy('p.id', 'DESC')
      .getMany();
    return Promise.all(
      sales.map(async ({ purchase }) => {
        if (purchase!.purchase_type !== 'bundle') return { ...purchase, game_id };
        const all = await this.sales.find({
          where: { purchase_id: purchase!.id },
          order: { game_id: 'ASC' },
        });
        return { ...purchase, game_id: all.map((sale) => sale.game_id) };
      }),
    );
  }

  async collection(user_id: number, id: number) {
    const collection = await this.collections.findOne({ where: { id } });
    if (!collection) throw new NotFoundException();
    if (collection.private && collection.user_id !== user_id) {
      const admin = await this.collectionAdmins.findOne({ where: { collection_id: id, user_id } });
      if (!admin) throw new NotFoundException();
    }
    return collection;
  }

  async editableCollections(user_id: number, game_id: number) {
    const administered = await this.collectionAdmins.find({ where: { user_id } });
    const collections = await this.collections.find({
      where: [{ user_id }, { id: In(administered.map(({ collection_id }) => collection_id)) }],
      order: { updated_at: 'DESC', id: 'DESC' },
    });
    return Promise.all(
      collections.map(async (collection) => ({
        ...collection,
        has_game: await this.entries.exists({ where: { collection_id: collection.id, game_id } }),
      })),
    );
  }

  async entriesOf(user_id: number, collection_id: number, page: number, per_page: number) {
    await this.collection(user_id, collection_id);
    const { addresses } = await this.buyer(user_id);
    const entries = await this.entries
      .createQueryBuilder('e')
      .innerJoinAndSelect('e.game', 'g')
      .innerJoinAndSelect('g.user', 'u')
      .where('e.collection_id = :collection_id', { collection_id })
      .andWhere(
        new Brackets((or) =>
          or
            .where(`g.visibility = 'public' AND g.published_at IS NOT NULL`)
            .orWhere('g.user_id = :user_id', { user_id })
            .orWhere('EXISTS (SELECT FROM game_admins a WHERE a.game_id = g.id AND a.user_id = :user_id)', {
              user_id,
            })
            .orWhere(
              `g.visibility = 'restricted' AND EXISTS (SELECT FROM download_keys k WHERE k.game_id = g.id
                 AND k.revoked_at IS NULL AND (k.account_id = :user_id OR (k.account_id IS NULL
                   AND (lower_ascii(k.email) IN (:...addresses) OR k.purchase_email IN (:...addresses)))))`,
              { user_id, addresses },
            ),
        ),
      )
      .orderBy('e.sort_key')
      .offset((page - 1) * per_page)
      .limit(per_page)
      .getMany();
    if (entries.length === 0) return [];
    // Positions count hidden entries too: those before the page are counted, and its own numbered.
    const [first, last] = [entries[0]!.sort_key, entries.at(-1)!.sort_key];
    const scope = this.entries
      .createQueryBuilder('e')
      .where('e.collection_id = :collection_id', { collection_id });
    // Not getCount(), which sorts all of them for COUNT(DISTINCT).
    const before = await scope
      .clone()
      .select('count(*)::int', 'entries')
      .andWhere('e.sort_key < :first', { first })
      .getRawOne<{ entries: number }>();
    const span = await scope
      .clone()
      .select('e.game_id', 'game_id')
      .andWhere('e.sort_key BETWEEN :first AND :last', { first, last })
      .orderBy('e.sort_key')
      .getRawMany<{ game_id: number }>();
    const positions = new Map(span.map(({ game_id }, i) => [game_id, before!.entries + i + 1]));
    return entries.map((entry) => ({ ...entry, position: positions.get(entry.game_id) }));
  }

  async latest(game_id: number, channel_name: string) {
    const game = await this.games.findOne({ where: { id: game_id, visibility: Not('private') } });
    const build =
      game &&
      (await this.builds.findOne({
        where: { game_id, channel_name, state: 'completed' },
        order: { id: 'DESC' },
      }));
    if (!build) throw new NotFoundException();
    return { latest: build.user_version ?? undefined };
  }

  private async editableGame(user_id: number, id: number): Promise<Game> {
    const game = await this.games.findOne({ where: { id } });
    if (!game || !(await this.canEdit(user_id, game))) throw new NotFoundException();
    return game;
  }

  private async canEdit(user_id: number, game: Game): Promise<boolean> {
    return game.user_id === user_id || this.admins.exists({ where: { game_id: game.id, user_id } });
  }

  private async hasKey(user_id: number, game_id: number): Promise<boolean> {
    const keys = await this.keysOf(user_id);
    return keys.andWhere('k.game_id = :game_id', { game_id }).getExists();
  }

  private async hasPurchase(user_id: number, game_id: number): Promise<boolean> {
    const { account, addresses } = await this.buyer(user_id);
    return this.sales
      .createQueryBuilder('s')
      .innerJoin('s.purchase', 'p')
      .where(`s.game_id = :game_id AND p.status = 'complete'`, { game_id })
      .andWhere('(s.user_id = :account OR s.email IN (:...addresses))', { account, addresses })
      .getExists();
  }

  private async keysOf(user_id: number) {
    const { account, addresses } = await this.buyer(user_id);
    const has = 'IN (:...addresses)';
    return this.keys
      .createQueryBuilder('k')
      .where('k.revoked_at IS NULL')
      .andWhere(
        new Brackets((or) =>
          or
            .where('k.account_id = :account', { account })
            .orWhere(`k.account_id IS NULL AND (lower_ascii(k.email) ${has} OR k.purchase_email ${has})`, {
              addresses,
            }),
        ),
      );
  }

  private verifier(email: string) {
    return this.emails
      .createQueryBuilder('m')
      .innerJoinAndSelect('m.user', 'u')
      .where({ email: email.toLowerCase(), verified: true })
      .getOne();
  }

  private async buyer(user_id?: number, email?: string) {
    const account = user_id ?? (await this.verifier(email!))?.user_id ?? null;
    const verified =
      account === null ? [] : await this.emails.find({ where: { user_id: account, verified: true } });
    const addresses = verified.map((one) => one.email);
    if (email !== undefined && !addresses.includes(email.toLowerCase())) addresses.push(email.toLowerCase());
    return { account, addresses: addresses.length > 0 ? addresses : [''] };
  }
}
