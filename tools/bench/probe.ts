/**
 * Loaded into every server that is measured (`node -r`), before its own code: tells its memory and processor time, and
 * records a CPU profile when asked to. The same in all servers; it does nothing until it is asked.
 */
import { writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';

export interface Usage {
  /** Microseconds of processor time since the start. */
  cpu: number;
  rss: number;
}

export type Question = { ask: 'usage' } | { ask: 'profile'; seconds: number; file: string };

async function profile(seconds: number, file: string): Promise<void> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: 200 });
  await session.post('Profiler.start');
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const { profile } = await session.post('Profiler.stop');
  session.disconnect();
  writeFileSync(file, JSON.stringify(profile));
}

process.on('message', (question: Question) => {
  if (question.ask === 'profile') {
    void profile(question.seconds, question.file).then(() => process.send!({ profiled: true }));
    return;
  }
  const { user, system } = process.cpuUsage();
  process.send!({ cpu: user + system, rss: process.memoryUsage.rss() } satisfies Usage);
});
// No server outlives a run that was ended from outside.
process.once('disconnect', () => process.exit());
// Listening for questions alone keeps no process alive.
process.channel?.unref();
