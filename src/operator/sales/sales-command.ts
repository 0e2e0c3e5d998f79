import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { INestApplicationContext } from '@nestjs/common';
import { EntityManager, IsNull } from 'typeorm';
import { hashApiKey, peppersOf } from '../../auth/api-key';
import { ApiKey } from '../../auth/api-key.entity';
import { commandName } from '../../platform/config/environment';
import { OperatorError } from '../../platform/config/operator-error';
import { Settings } from '../../platform/config/settings';
import { ignoringCase } from '../../platform/database/ignoring-case';
import { CURRENCIES, minorUnitsOf } from '../../platform/formats/money';
import type { Game } from '../../games/game.entity';
import { gameNamed } from '../../games/game-named';
import { OwnAddress } from '../../platform/http/own-address';
import { User } from '../../auth/accounts/user.entity';
import { isPseudonym } from '../../users/erased-users';

/** Finds the game and the buyer that a command names. */
export class SalesCommand {
  private readonly entities: EntityManager;

  constructor(private readonly app: INestApplicationContext) {
    this.entities = app.get(EntityManager);
  }

  game(name: string): Promise<Game> {
    return gameNamed(this.entities, name);
  }

  /** An email address or a username. */
  async buyer(to: string): Promise<{ email: string } | { user_id: number }> {
    if (to.includes('@')) {
      if (/^[^\s@]+@[^\s@]+$/.test(to) && to.length <= 254) return { email: to };
      throw new OperatorError(`${to} isn't a valid email address.`);
    }
    const user = await this.entities.findOneBy(User, { username: ignoringCase(to) });
    if (!user || isPseudonym(user.username, user.id)) throw new OperatorError(`User ${to} doesn't exist.`);
    return { user_id: user.id };
  }

  /** A command that shows the API's response, with the key that `npm start` printed if it is the developer's. */
  async request(game: Game, path: string, parameters: Record<string, string | number>): Promise<string> {
    const [[name, value]] = Object.entries(parameters) as [[string, string | number]];
    const url = `${this.app.get(OwnAddress).announced}/games/${game.id}/${path}?${name}=${encodeURIComponent(value)}`;
    const key = await this.demoKeyOf(game.user_id);
    const curl = `curl -H "Authorization: Bearer ${key ?? '$GAMEWHARF_KEY'}" "${url}"`;
    return key ? curl : `GAMEWHARF_KEY=$(${commandName()} keys create --user ${game.owner_name})\n${curl}`;
  }

  private async demoKeyOf(user_id: number): Promise<string | undefined> {
    const settings = this.app.get(Settings);
    const file = join(settings.DATA_DIR, 'demo-api-key');
    if (!existsSync(file)) return undefined;
    const key = readFileSync(file, 'utf8').trim();
    const key_hash = hashApiKey(key, peppersOf(settings)[0]!);
    return (await this.entities.existsBy(ApiKey, { key_hash, user_id, revoked_at: IsNull() }))
      ? key
      : undefined;
  }
}

/** Minor units: 499 for 4.99 dollars. */
export function amountOf(price: string, currency: string): number {
  if (!CURRENCIES.includes(currency))
    throw new OperatorError(`${currency} isn't a valid currency. Use an ISO 4217 code such as USD.`);
  const unit = minorUnitsOf(currency);
  const digits = String(unit).length - 1;
  const [, whole, fraction = ''] = /^(\d{1,12})(?:\.(\d+))?$/.exec(price) ?? [];
  const amount = whole === undefined ? NaN : Number(whole) * unit + Number(fraction.padEnd(digits, '0'));
  if (!Number.isSafeInteger(amount) || fraction.length > digits)
    throw new OperatorError(
      `Invalid price "${price}". Use a number of ${currency} such as ${digits ? `4.${'9'.repeat(digits)}` : '500'}.`,
    );
  return amount;
}
