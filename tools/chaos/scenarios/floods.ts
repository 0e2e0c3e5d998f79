import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { flood, type Flooded } from '../../../test/support/floods/flood';
import { type PatternName, PATTERNS } from '../../../test/support/floods/patterns';
import { Metrics } from '../../../test/support/floods/metrics';
import {
  ATTACKER,
  CONTROL_CLIENTS,
  toNdjsonText,
  OPERATOR_TOKEN,
  operatorAuthorization,
  tenantRecords,
} from '../../../test/support/world/world';
import { ask } from '../ask';
import type { Scenario } from '../scenario';

const NAMES = Object.keys(PATTERNS) as PatternName[];
const SEED = 24;

export const floods: Scenario = {
  name: 'floods',
  fault: `one IP address floods: ${NAMES.join(', ')}`,
  promise:
    'a control client gets 95% of responses within a second, nothing stays in flight, the process survives',
  control: 'pipelined requests outlive their connection',
  async run({ lab, guarded, quick }) {
    const seconds = quick || !guarded ? 3 : 10;
    const files = await mkdtemp(join(tmpdir(), 'gamewharf-floods-'));
    const { postgres, service } = await lab.started({
      without: guarded ? undefined : 'connection cleanup',
      // The default limits apply.
      RATE_LIMIT: undefined,
      OPERATOR_TOKEN,
      FILES_DIR: files,
      SIGN_UP: 'true',
      // Pushes follow the URLs in responses, which must be those of this replica.
      PUBLIC_URL: undefined,
    });
    await ask(`${service.url}/operator/import`, {
      method: 'POST',
      headers: { authorization: operatorAuthorization, 'content-type': 'application/x-ndjson' },
      body: toNdjsonText([ATTACKER, ...CONTROL_CLIENTS].flatMap(tenantRecords)),
    });
    const at: Flooded = {
      base: service.url,
      metrics: new Metrics(`http://127.0.0.1:${service.metrics_port}`, service.pid),
      controlClient: CONTROL_CLIENTS[0]!,
      database: postgres.url,
      files,
      isRunning: () => service.running,
    };
    const happened: string[] = [];
    const broken: string[] = [];
    for (const pattern of NAMES) {
      const outcome = await flood(at, { pattern, seconds, seed: SEED });
      happened.push(`${pattern}: ${outcome.seen}`);
      broken.push(...outcome.broken.map((what) => `${pattern}: ${what}`));
      if (outcome.broken.length > 0) break;
    }
    await rm(files, { recursive: true });
    return { happened: happened.join('; '), broken };
  },
};
