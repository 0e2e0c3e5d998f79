import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { INestApplicationContext } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { hashApiKey } from '../auth/api-key';
import { OperatorError } from '../config/operator-error';
import { Settings } from '../config/settings';
import { ignoringCase } from '../database/ignoring-case';
import { CURRENCIES, minorUnitsOf } from '../formats/money';
import type { Game } from '../games/game.entity';
import { gameNamed } from '../games/game-named';
import { OwnAddress } from '../http/own-address';
import { User } from '../users/user.entity';

/** What a laptop's till asks of the store before it sells. */
export class Till {
  private readonly entities: EntityManager;

  constructor(private readonly app: INestApplicationContext) {
    this.entities = app.get(EntityManager);
  }

  game(name: string): Promise<Game> {
    return gameNamed(this.entities, name);
  }

  /** An e-mail address, or the name of an account. */
  async buyer(to: string): Promise<{ email: string } | { user_id: number }> {
    if (to.includes('@')) {
      if (/^[^\s@]+@[^\s@]+$/.test(to) && to.length <= 254) return { email: to };
      throw new OperatorError(`${to} is not an e-mail address.`);
    }
    const user = await this.entities.findOneBy(User, { username: ignoringCase(to) });
    if (!user) throw new OperatorError(`There is no user ${to}.`);
    return { user_id: user.id };
  }

  /** What to type to see it: with the key that `npm start` printed, where it is the developer's. */
  async request(game: Game, path: string, parameters: Record<string, string | number>): Promise<string> {
    const [[name, value]] = Object.entries(parameters) as [[string, string | number]];
    const url = `${this.app.get(OwnAddress).announced}/games/${game.id}/${path}?${name}=${encodeURIComponent(value)}`;
    const key = await this.demoKeyOf(game.user_id);
    const curl = `curl -H "Authorization: Bearer ${key ?? '$GAMEWHARF_KEY'}" "${url}"`;
    return key ? curl : `GAMEWHARF_KEY=   # an API key of ${game.owner_name}\n${curl}`;
  }

  private async demoKeyOf(user_id: number): Promise<string | undefined> {
    const { DATA_DIR, API_KEY_PEPPER } = this.app.get(Settings);
    const file = join(DATA_DIR, 'demo-api-key');
    if (!existsSync(file)) return undefined;
    const key = readFileSync(file, 'utf8').trim();
    const found = await this.entities.query<object[]>(
      'SELECT FROM api_keys WHERE key_hash = $1 AND user_id = $2 AND revoked_at IS NULL',
      [hashApiKey(key, Buffer.from(API_KEY_PEPPER ?? '')), user_id],
    );
    return found.length > 0 ? key : undefined;
  }
}

/** Minor units: 499 for 4.99 dollars. */
export function amountOf(price: string, currency: string): number {
  if (!CURRENCIES.includes(currency))
    throw new OperatorError(`${currency} is no currency: give an ISO 4217 code such as USD.`);
  const unit = minorUnitsOf(currency);
  const digits = String(unit).length - 1;
  const [, whole, fraction = ''] = /^(\d{1,12})(?:\.(\d+))?$/.exec(price) ?? [];
  const amount = whole === undefined ? NaN : Number(whole) * unit + Number(fraction.padEnd(digits, '0'));
  if (!Number.isSafeInteger(amount) || fraction.length > digits)
    throw new OperatorError(
      `${price} is no price in ${currency}: give one such as ${digits ? `4.${'9'.repeat(digits)}` : '500'}.`,
    );
  return amount;
}
