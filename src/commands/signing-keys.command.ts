import { Audit } from '../audit/audit';
import { formatSeconds, type Key } from '../auth/jwt/signing-key';
import { SigningKeysService } from '../auth/jwt/signing-keys.service';
import { Clock } from '../platform/config/clock';
import { type Commands, type OperatorCommand, subcommands } from './operator-command';
import { type Columns, printRows } from './print-table';

export const commands: Commands = {
  'signing-keys': subcommands({ rotate: registerRotate, list: registerList, revoke: registerRevoke }),
};

function registerRotate(command: OperatorCommand): void {
  command
    .description(
      'Publish a new signing key. It takes effect after ten minutes, once clients have fetched it.',
    )
    .option('--now', 'sign with the new key immediately, for example if the old key was compromised')
    .handler(async ({ app }, { now = false }: { now?: boolean }) => {
      const key = await app.get(SigningKeysService).rotate({ at_once: now });
      app.get(Audit).record({ event: 'signing_key.created', kid: key.kid });
      console.log(`Key ${key.kid} is published and will be used from ${formatSeconds(key.signs_from)}.`);
    });
}

function registerList(command: OperatorCommand): void {
  command
    .description('List the published signing keys.')
    .json()
    .handler(async ({ app }, { json }: { json?: boolean }) => {
      const service = app.get(SigningKeysService);
      const keys = await service.published();
      const current = service.current()?.kid;
      const columns: Columns<Key> = {
        KEY: (key) => key.kid,
        STATE: (key) => describeState(key, current, app.get(Clock).now()),
        'SIGNS FROM': (key) => formatWhen(key.signs_from),
        'VERIFIES UNTIL': (key) => formatWhen(key.verifies_until),
      };
      printRows(keys, columns, { json });
    });
}

function registerRevoke(command: OperatorCommand): void {
  command
    .description('Revoke a compromised signing key and all JWTs that it signed.')
    .argument('<KID>', 'ID of the key, from `signing-keys list`')
    .handler(async ({ app }, kid: string) => {
      await app.get(SigningKeysService).revoke(kid);
      app.get(Audit).record({ event: 'signing_key.revoked', kid });
      console.log(`Key ${kid} is revoked. Running servers reject its tokens within seconds.`);
    });
}

const describeState = ({ kid, signs_from }: Key, current: string | undefined, now: number) =>
  kid === current ? 'active' : signs_from > now / 1000 ? 'upcoming' : 'verify-only';

const formatWhen = (seconds: number) => (Number.isFinite(seconds) ? formatSeconds(seconds) : null);
