import { setImmediate as checkPhase } from 'node:timers/promises';
import { sanitizeHtml } from '../../src/collections/html';
import { HtmlThread } from '../../src/collections/html-thread';
import { ATTACKS } from '../support/html-attacks';
import { type Actor } from '../support/actor';
import { useStore } from '../support/app';
import { make } from '../support/make';
import { HANGING, until } from '../support/time';

useStore();

let owner: Actor;
let path: string;
beforeAll(async () => {
  owner = await make.user();
  path = `/collections/${(await make.collection({ owner })).id}`;
});

const LONG = `${'<p>One of many paragraphs.</p>'.repeat(100)}<script>alert(1)</script>`;
const describedAs = (description: string | null) => ({ status: 200, body: { collection: { description } } });

test('sanitizes a long text like a short one', async () => {
  for (const attack of ATTACKS) {
    const html = LONG + attack;
    expect(await owner.post(path, { description: html })).toMatchObject(describedAs(sanitizeHtml(html)));
  }
});

test('reports other problems as well', async () => {
  const html = '<p>x</p>'.repeat(5000);
  expect(await owner.post(path, { title: 'x'.repeat(61), description: html, private: 'perhaps' })).toEqual({
    status: 400,
    body: {
      errors: [
        'title must be at most 60 characters',
        'description must be at most 20000 characters',
        'private must be a boolean',
      ],
    },
  });
});

describe('the thread', () => {
  let thread: HtmlThread;
  // Starting one takes seconds on a busy machine.
  beforeEach(() => (thread = new HtmlThread(HANGING)));
  afterEach(() => thread.end());

  const unavailable = { status: 503, headers: { 'Retry-After': '1' } };
  const clean = sanitizeHtml(LONG);

  test('returns each sanitized text', async () => {
    const texts = Array.from({ length: 50 }, (_, i) => `${LONG}<b>${i}`);
    expect(await Promise.all(texts.map((text) => thread.sanitize(text)))).toEqual(texts.map(sanitizeHtml));
  });

  test('fails only one text when it crashes; others get a new thread', async () => {
    const [first, second] = [thread.sanitize(LONG), thread.sanitize(LONG)];
    await checkPhase();
    void thread['worker']!.terminate();
    await expect(first).rejects.toMatchObject(unavailable);
    expect(await second).toBe(clean);
  });

  test('is terminated when it hangs', async () => {
    thread = new HtmlThread(3000);
    await expect(thread.sanitize('<'.repeat(20_000_000))).rejects.toMatchObject(unavailable);
    Object.assign(thread, { timeout: HANGING });
    expect(await thread.sanitize(LONG)).toBe(clean);
  });

  test('rejects more work when its queue is full', async () => {
    const texts = Array.from({ length: 200 }, () => thread.sanitize(LONG));
    const outcomes = await Promise.allSettled(texts);
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBe(101);
    expect(outcomes.filter(({ status }) => status === 'rejected').length).toBe(99);
  });

  test('keeps no process alive while it is idle', async () => {
    await thread.sanitize(LONG);
    await until(() => !process.getActiveResourcesInfo().includes('MessagePort'));
    expect(await thread.sanitize(LONG)).toBe(clean);
  });

  test('starts again after it ended', async () => {
    expect(await thread.sanitize(LONG)).toBe(clean);
    thread.end();
    expect(await thread.sanitize(LONG)).toBe(clean);
  });
});
