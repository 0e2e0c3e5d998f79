import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { closest } from 'fastest-levenshtein';
import { type Repository } from 'typeorm';
import { ignoringCase } from '../platform/database/ignoring-case';
import { violatedConstraint } from '../platform/database/sqlstates';
import { OperatorError, UsageError } from '../platform/errors/operator-error';
import { InvalidValue } from '../platform/input/input-values';
import { readInteger } from '../platform/input/readers';
import { Game } from './game.entity';

/** Maximum number of names that are compared with a mistyped one. */
const MAX_CANDIDATES = 2000;

type NewGame = Pick<Game, 'user_id' | 'owner_name' | 'slug' | 'title' | 'min_price'>;

/** All games, for the operator of the store. */
@Injectable()
export class StoreGames {
  constructor(@InjectRepository(Game) private readonly games: Repository<Game>) {}

  /** The game with an ID, or named as `ash-beetle/brave-arcade`. */
  async named(name: string): Promise<Game> {
    const [, owner, slug] = /^([^/]+)\/([^/]+)$/.exec(name) ?? [];
    if (owner === undefined || slug === undefined) return this.withId(name);
    const game = await this.games.findOneBy({ owner_name: ignoringCase(owner), slug });
    if (game) return game;
    const similar = await this.similarName(owner, slug, name);
    throw new OperatorError(
      `Game ${name} doesn't exist.${similar === undefined ? '' : ` Did you mean ${similar}?`}`,
    );
  }

  private async withId(text: string): Promise<Game> {
    const id = readInteger(text);
    if (id instanceof InvalidValue)
      throw new UsageError(
        `Invalid game "${text}". Use owner/slug, such as ash-beetle/brave-arcade, or an ID.`,
      );
    const game = await this.games.findOneBy({ id });
    if (!game) throw new OperatorError(`Game ${text} doesn't exist.`);
    return game;
  }

  /** Matches the owner's games and those with this slug. */
  private async similarName(owner: string, slug: string, name: string): Promise<string | undefined> {
    const games = await this.games.find({
      select: { owner_name: true, slug: true },
      where: [{ owner_name: ignoringCase(owner) }, { slug }],
      order: { id: 'DESC' },
      take: MAX_CANDIDATES,
    });
    return games.length === 0
      ? undefined
      : closest(
          name,
          games.map((game) => `${game.owner_name}/${game.slug}`),
        );
  }

  /** Returns the ID of the new public game. */
  async create(game: NewGame): Promise<number> {
    const traits: Game['traits'] = game.min_price > 0 ? ['can_be_bought'] : [];
    try {
      const { identifiers } = await this.games.insert({ ...game, traits, published_at: () => 'now()' });
      return (identifiers[0] as Pick<Game, 'id'>).id;
    } catch (error) {
      const constraint = violatedConstraint(error);
      if (constraint !== 'games_slug_key') throw error;
      throw new OperatorError(
        `The game ${game.owner_name}/${game.slug} exists already. Use --slug for another URL.`,
      );
    }
  }

  async setPrice({ id, traits }: Game, min_price: number): Promise<void> {
    // A free game keeps `can_be_bought`, because buyers can pay more than the minimum price.
    const sold: Game['traits'] = min_price > 0 ? ['can_be_bought'] : [];
    await this.games.update({ id }, { min_price, traits: [...new Set([...traits, ...sold])] });
  }

  newest(owner_name: string | undefined, count: number): Promise<Game[]> {
    return this.games.find({
      where: owner_name === undefined ? {} : { owner_name: ignoringCase(owner_name) },
      order: { id: 'DESC' },
      take: count,
    });
  }
}
