import type { Agent } from 'node:http';
import { type HttpResponse, ask } from './ask';
import type { Service } from './service';
import { DEVELOPER, KEYS } from './store';

/** Ordinary clients: two of three read, and one writes. */
export const readOrWrite =
  (service: Pick<Service, 'url'>, { timeout }: { timeout: number }) =>
  (client: number, agent: Agent): Promise<HttpResponse> => {
    const key = KEYS[client % KEYS.length];
    if (client % 3 > 0) return ask(`${service.url}/profile`, { key, agent, timeout });
    return ask(`${service.url}/collections`, {
      method: 'POST',
      key,
      form: { title: `Of client ${client}` },
      agent,
      timeout,
    });
  };

/** The status of one read; 0: no response in time. */
export const read = (service: Pick<Service, 'url'>, timeout = 3000): Promise<number> =>
  ask(`${service.url}/profile`, { key: DEVELOPER, timeout }).then(
    ({ status }) => status,
    () => 0,
  );
