import { explain, settingsOfThisProcess, startedByNpm } from './platform/config/environment';
import { PARENT } from './parent';
import { Server } from './server';

/** Makes this process the service, until a signal ends it. */
export function serve(): void {
  const server = new Server();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void server.stop(0));
  if (startedByNpm()) watchParent(server);
  server.start(settingsOfThisProcess).catch((error: unknown) => {
    if (!server.isStopping) console.error(explain(error));
    void server.stop(1);
  });
}

/** A signal to npm ends only npm's shell, so this process stops when its parent changes. */
function watchParent(server: Server): void {
  setInterval(() => {
    if (process.ppid !== PARENT) void server.stop(0);
  }, 250).unref();
}
