/**
 * Loaded into every measured server (`node -r`) before its own code. Reports memory and CPU time on request, and is the
 * same in all servers.
 */
export interface Usage {
  /** Microseconds of CPU time since the start. */
  cpu: number;
  rss: number;
}

process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send!({ cpu: user + system, rss: process.memoryUsage.rss() } satisfies Usage);
});
// No server survives an interrupted run.
process.once('disconnect', () => process.exit());
process.channel?.unref();
