import { once } from 'node:events';
import type { ListenOptions, Server } from 'node:net';
import { OperatorError } from '../errors/operator-error';

/** How the operator sets the port and the host. */
const SETTINGS = { port: 'PORT', host: 'HOST' };

/** Resolves when the server listens. The error of a port or host that can't be used says what to change. */
export async function listen(
  server: Server,
  options: ListenOptions & { port: number; host: string },
  names = SETTINGS,
): Promise<void> {
  const { port, host } = options;
  try {
    server.listen(options);
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE')
      throw new OperatorError(
        `Port ${port} on ${host} is already in use. Stop the program that uses it, or set ${names.port} to a different port.`,
      );
    if (code === 'EACCES')
      throw new OperatorError(
        `The service isn't allowed to listen on port ${port}. Set ${names.port} to a value above 1023.`,
      );
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
      throw new OperatorError(
        `${names.host} ${host} isn't an IP address of this machine. Set ${names.host} to one that is, such as 0.0.0.0.`,
      );
    throw error;
  }
}
