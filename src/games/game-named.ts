import type { EntityManager } from 'typeorm';
import { OperatorError } from '../platform/errors/operator-error';
import { ignoringCase } from '../platform/database/ignoring-case';
import { InvalidValue } from '../platform/input/given-values';
import { readInteger } from '../platform/input/readers';
import { Game } from './game.entity';

/** The game that an operator identifies by ID, or as `ash-beetle/brave-arcade`. */
export async function gameNamed(entities: EntityManager, name: string): Promise<Game> {
  const [, owner, slug] = /^([^/]+)\/([^/]+)$/.exec(name) ?? [];
  const game = await entities.findOneBy(
    Game,
    owner === undefined ? { id: idIn(name) } : { owner_name: ignoringCase(owner), slug },
  );
  if (!game) throw new OperatorError(`Game ${name} doesn't exist.`);
  return game;
}

function idIn(text: string): number {
  const id = readInteger(text);
  if (id instanceof InvalidValue)
    throw new OperatorError(
      `Invalid game "${text}". Use owner/slug, such as ash-beetle/brave-arcade, or an ID.`,
    );
  return id;
}
