import type { INestApplicationContext } from '@nestjs/common';
import type { User } from '../auth/accounts/user.entity';
import { ApiKeysService } from '../auth/keys/api-keys.service';
import { commandName } from '../platform/config/environment';
import { Settings } from '../platform/config/settings';
import { readSecret } from '../platform/config/stored-secrets';
import { ServiceUrl } from '../platform/server/service-url';

/** Prints a request of a user that shows the effect of a command, with the demo key if it is the user's. */
export async function printRequest(
  app: INestApplicationContext,
  { id, username }: Pick<User, 'id' | 'username'>,
  path: string,
): Promise<void> {
  const key = await findDemoKey(app, id);
  if (!key) console.log(`GAMEWHARF_KEY=$(${commandName()} keys create --user ${username})`);
  const url = app.get(ServiceUrl).announced + path;
  console.log(`curl -H "Authorization: Bearer ${key ?? '$GAMEWHARF_KEY'}" "${url}"`);
}

async function findDemoKey(app: INestApplicationContext, user_id: number): Promise<string | undefined> {
  const settings = app.get(Settings);
  const key = readSecret(settings.DATA_DIR, 'demo-api-key');
  if (key === undefined) return undefined;
  return (await app.get(ApiKeysService).belongsTo(user_id, key)) ? key : undefined;
}
