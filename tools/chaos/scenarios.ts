import { hasRedis } from '../../test/support/redis';
import type { Scenario } from './scenario';
import { floods } from './scenarios/floods';
import { overload } from './scenarios/overload';
import { poolExhausted } from './scenarios/pool-exhausted';
import { postgresFrozen } from './scenarios/postgres-frozen';
import { postgresGone } from './scenarios/postgres-gone';
import { primaryLost } from './scenarios/primary-lost';
import { readOnly } from './scenarios/read-only';
import { redisLost } from './scenarios/redis-lost';
import { rollingRestart } from './scenarios/rolling-restart';
import { signingKeysRotated } from './scenarios/signing-keys-rotated';
import { slowClients } from './scenarios/slow-clients';
import { startedFirst } from './scenarios/started-first';
import { webhooksKilled } from './scenarios/webhooks-killed';
import { WRITERS_INTERRUPTED } from './scenarios/writers-interrupted';

export const SCENARIOS: Scenario[] = [
  startedFirst,
  postgresGone,
  postgresFrozen,
  ...WRITERS_INTERRUPTED,
  primaryLost,
  poolExhausted,
  readOnly,
  ...(hasRedis ? [redisLost] : []),
  webhooksKilled,
  rollingRestart,
  overload,
  slowClients,
  floods,
  signingKeysRotated,
];
