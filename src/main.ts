import 'reflect-metadata';
import { explain, settingsOfThisProcess } from './config/environment';
import { Server } from './process/server';

const server = new Server();

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void server.stop(0));
watchNpm();

server.start(settingsOfThisProcess).catch((error: unknown) => {
  if (!server.isStopping) console.error(explain(error));
  void server.stop(1);
});

/** A signal to npm ends only npm's shell: stops this process when its parent changes. */
function watchNpm(): void {
  if (!process.env.npm_lifecycle_event) return;
  const shell = process.ppid;
  setInterval(() => {
    if (process.ppid !== shell) void server.stop(0);
  }, 250).unref();
}
