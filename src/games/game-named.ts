import type { EntityManager } from 'typeorm';
import { OperatorError } from '../platform/config/operator-error';
import { ignoringCase } from '../platform/database/ignoring-case';
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
  const id = Number(text);
  if (!/^[1-9]\d*$/.test(text) || !Number.isSafeInteger(id))
    throw new OperatorError(
      `Name a game as owner/slug, such as ash-beetle/brave-arcade, or by its id; not ${text}.`,
    );
  return id;
}
