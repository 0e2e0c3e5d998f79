import { hasRedis } from '../../test/support/redis';
import type { Scenario } from './scenario';
import { connectionsReset } from './scenarios/connections-reset';
import { connectionsTerminated } from './scenarios/connections-terminated';
import { floods } from './scenarios/floods';
import { overload } from './scenarios/overload';
import { poolExhausted } from './scenarios/pool-exhausted';
import { postgresFrozen } from './scenarios/postgres-frozen';
import { postgresGone } from './scenarios/postgres-gone';
import { postgresKilled } from './scenarios/postgres-killed';
import { primaryLost } from './scenarios/primary-lost';
import { readOnly } from './scenarios/read-only';
import { redisLost } from './scenarios/redis-lost';
import { rollingRestart } from './scenarios/rolling-restart';
import { serviceKilled } from './scenarios/service-killed';
import { signingKeysRotated } from './scenarios/signing-keys-rotated';
import { slowClients } from './scenarios/slow-clients';
import { startedFirst } from './scenarios/started-first';
import { webhooksKilled } from './scenarios/webhooks-killed';

export const SCENARIOS: Scenario[] = [
  startedFirst,
  postgresGone,
  postgresFrozen,
  postgresKilled,
  connectionsReset,
  connectionsTerminated,
  primaryLost,
  poolExhausted,
  readOnly,
  ...(hasRedis ? [redisLost] : []),
  serviceKilled,
  webhooksKilled,
  rollingRestart,
  overload,
  slowClients,
  floods,
  signingKeysRotated,
];
