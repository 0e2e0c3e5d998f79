import { sleep } from '../../test/support/time';
import { type HttpResponse } from './ask';
import { Tally } from './tally';

/** Sends requests at this rate, whatever happens to earlier ones. */
export async function sendAtRate(
  rate: number,
  seconds: number,
  request: (n: number) => Promise<HttpResponse>,
): Promise<Tally> {
  const tally = new Tally();
  const asked: Promise<unknown>[] = [];
  const begun = performance.now();
  for (let now = 0; now < seconds * 1000; now = performance.now() - begun) {
    while (asked.length < (now / 1000) * rate) asked.push(tally.of(request(asked.length)));
    await sleep(5);
  }
  await Promise.all(asked);
  return tally;
}
