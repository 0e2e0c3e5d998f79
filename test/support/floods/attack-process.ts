import { Pool } from 'pg';
import { Attack } from './attack';
import type { AttackOrder, AttackReport } from './flood';
import { type Pattern, PATTERNS } from './patterns';

process.once('message', async ({ base, database, pattern, seconds, seed, files }: AttackOrder) => {
  const sql = new Pool({ connectionString: database, max: 1 });
  const attack = new Attack(base, sql, seconds, seed, files);
  attack.begin();
  const broken = (await (PATTERNS[pattern] as Pattern)(attack).finally(() => attack.end())) ?? [];
  const report: AttackReport = {
    sent: String(attack),
    failed: attack.seen.get(500) ?? 0,
    broken: [...attack.broken, ...broken],
  };
  process.send?.(report);
  await sql.end();
  process.disconnect();
});
// Stops the attack when its test has ended.
process.on('disconnect', () => process.exit());
