import { isDeepStrictEqual } from 'node:util';
import type { Ask } from '../../test/support/world/message';
import { expectedRejection } from './expectation';
import { checkDescribed, excerpt, Finding } from './oracles';
import type { Target } from './target';

const isUnroutable = (value: string) => value === '' || /\p{Surrogate}/u.test(value);

/** Sends one request, and compares the response with the description and with the permissions of its credential. */
export async function runAsk(target: Target, ask: Ask): Promise<void> {
  const operation = target.operation(ask.operation);
  const { response, json } = await target.ask(ask);
  if (ask.method && ask.method !== operation.method) return;
  const unroutable = Object.values(ask.path).some(isUnroutable);
  checkDescribed(operation, response, unroutable);
  if (unroutable || operation.path.startsWith('/operator/')) return;
  const [status, error] = expectedRejection(ask, operation, target.tenant) ?? [];
  const isRight =
    status === undefined
      ? response.status !== 401 || !operation.secured
      : response.status === status && isDeepStrictEqual(json, { errors: [error] });
  if (!isRight)
    throw new Finding(
      'credential',
      `${operation.name} returns ${response.status} instead of ${status ?? 'accepting it'}`,
      `${excerpt(response)}\nexpected: ${error ?? 'no 401'}`,
    );
}
