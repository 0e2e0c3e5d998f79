import { Injectable, NotFoundException } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Brackets, In, Not, Repository } from 'typeorm';
import { CollectionAdmin } from '../../../../src/collections/collection-admin.entity';
import { CollectionGame } from '../../../../src/collections/collection-game.entity';
import { Collection } from '../../../../src/collections/collection.entity';
import { GameAdmin } from '../../../../src/games/game-admin.entity';
import { GameEarning } from '../../../../src/purchases/earnings/game-earning.entity';
import { Game } from '../../../../src/games/game.entity';
import { DownloadKey } from '../../../../src/purchases/keys/download-key.entity';
import { UserEmail } from '../../../../src/auth/accounts/user-email.entity';
import { Build } from '../../../../src/wharf/build.entity';

/** The usual approach: a repository per table, and relations between rows. */
@Injectable()
export class StoreService {
  constructor(
    @InjectRepository(Game) private readonly games: Repository<Game>,
    @InjectRepository(GameAdmin) private readonly admins: Repository<GameAdmin>,
    @InjectRepository(GameEarning) private readonly earnings: Repository<GameEarning>,
    @InjectRepository(DownloadKey) private readonly keys: Repository<DownloadKey>,
    @InjectRepository(UserEmail) private readonly emails: Repository<UserEmail>,
    @InjectRepository(Collection) private readonly collections: Repository<Collection>,
    @InjectRepository(CollectionAdmin) private readonly collectionAdmins: Repository<CollectionAdmin>,
    @InjectRepository(CollectionGame) private readonly entries: Repository<CollectionGame>,
    @InjectRepository(Build) private readonly builds: Repository<Build>,
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

  async collection(user_id: number, id: number) {
    const collection = await this.collections.findOne({ where: { id } });
    if (!collection) throw new NotFoundException();
    if (collection.private && collection.user_id !== user_id) {
      const admin = await this.collectionAdmins.findOne({ where: { collection_id: id, user_id } });
      if (!admin) throw new NotFoundException();
    }
    return collection;
  }

  async collectionGames(user_id: number, collection_id: number, page: number, per_page: number) {
    await this.collection(user_id, collection_id);
    const addresses = await this.verifiedEmails(user_id);
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
    // getCount() would sort all entries for COUNT(DISTINCT).
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

  private async canEdit(user_id: number, game: Game): Promise<boolean> {
    return game.user_id === user_id || this.admins.exists({ where: { game_id: game.id, user_id } });
  }

  private async hasKey(user_id: number, game_id: number): Promise<boolean> {
    const addresses = await this.verifiedEmails(user_id);
    const has = 'IN (:...addresses)';
    return this.keys
      .createQueryBuilder('k')
      .where('k.revoked_at IS NULL AND k.game_id = :game_id', { game_id })
      .andWhere(
        `(k.account_id = :user_id OR (k.account_id IS NULL AND (lower_ascii(k.email) ${has} OR k.purchase_email ${has})))`,
        { user_id, addresses },
      )
      .getExists();
  }

  private async verifiedEmails(user_id: number) {
    const verified = await this.emails.find({ where: { user_id, verified: true } });
    return verified.length > 0 ? verified.map(({ email }) => email) : [''];
  }
}
