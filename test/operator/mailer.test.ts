import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { WebhookDeliveries } from '../../src/operator/webhooks/webhook-deliveries.service';
import { WebhooksService } from '../../src/operator/webhooks/webhooks.service';
import { LinkRequests } from '../../src/users/links/link-requests.service';
import { Browser, PASSWORD, withPassword } from '../support/browser';
import { OPERATOR_TOKEN } from '../support/importing';
import { readExamples } from '../support/page-examples';
import { freePort } from '../../src/dev/embedded/server';
import { baseUrl, theApp, useStore } from '../support/app';
import { send } from '../support/http';
import { actors, make } from '../support/make';
import { until } from '../support/time';

useStore({ OPERATOR_TOKEN, SIGN_UP: 'true' });

const [example] = readExamples('guides/let-buyers-in.md').filter(({ language }) => language === 'js');
interface Mail {
  to: string;
  text: string;
}
const mails: Mail[] = [];
/** The next mails to reject, as a full mailbox does. */
let rejected = 0;
const smtp = new SMTPServer({
  authOptional: true,
  disabledCommands: ['STARTTLS', 'AUTH'],
  onData(stream, { envelope }, done) {
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      if (rejected-- > 0) return done(new Error('try again later'));
      rejected = 0;
      // Long lines end in = where they are broken, and = itself is encoded.
      const text = Buffer.concat(chunks).toString().replace(/=\r\n/g, '').replaceAll('=3D', '=');
      mails.push({ to: envelope.rcptTo[0]!.address, text });
      done();
    });
  },
});
let mailer: ChildProcess;

beforeAll(async () => {
  smtp.listen(0, '127.0.0.1');
  await once(smtp.server, 'listening');
  const MAILER_PORT = String(await freePort());
  const url = `http://127.0.0.1:${MAILER_PORT}/`;
  const events = ['link.requested', 'purchase.completed'];
  const { secret } = await theApp().get(WebhooksService).add({ url, events, game_id: null });
  mailer = spawn(process.execPath, ['--input-type=module', '-e', example!.code], {
    stdio: 'inherit',
    env: {
      ...process.env,
      GAMEWHARF_URL: baseUrl(),
      OPERATOR_TOKEN,
      WEBHOOK_SECRET: secret,
      SMTP_URL: `smtp://127.0.0.1:${(smtp.server.address() as AddressInfo).port}`,
      MAIL_FROM: 'store@example.com',
      MAILER_PORT,
    },
  });
  await until(() =>
    fetch(url).then(
      ({ status }) => status === 401,
      () => false,
    ),
  );
});
afterAll(async () => {
  mailer.kill();
  await once(mailer, 'exit');
  await new Promise<void>((resolve) => smtp.close(() => resolve()));
});
beforeEach(() => void mails.splice(0));

async function mail(): Promise<Mail> {
  await theApp().get(LinkRequests).flush();
  await until(() => {
    theApp().get(WebhookDeliveries).poll();
    return Promise.resolve(mails.length > 0);
  });
  return mails[0]!;
}
const pathIn = ({ text }: Mail, folder: string) =>
  new RegExp(`${baseUrl()}(/${folder}/\\S+)`).exec(text)![1]!;

test('sends the link of a sign-up, with which the account is created', async () => {
  const browser = new Browser();
  await browser.get('/sign-up');
  await browser.submit('/sign-up', {
    email: 'new@example.com',
    username: 'newcomer',
    new_password: PASSWORD,
  });
  const sent = await mail();
  expect(sent).toMatchObject({
    to: 'new@example.com',
    text: expect.stringContaining('Create your account') as string,
  });
  await browser.get(pathIn(sent, 'links'));
  await browser.submit(pathIn(sent, 'links'));
  expect((await new Browser().signIn('newcomer')).status).toBe(303);
});

test('sends the same link again if the mail server rejected it', async () => {
  await withPassword(
    await make.user({ username: 'forgetful', emails: [{ email: 'old@example.com', verified: true }] }),
  );
  rejected = 1;
  const browser = new Browser();
  await browser.get('/forgot-password');
  await browser.submit('/forgot-password', { username: 'forgetful' });
  const sent = await mail();
  expect(sent.to).toBe('old@example.com');
  await browser.get(pathIn(sent, 'links'));
  expect(browser.words).toContain('Set a new password');
});

async function sell(email: string): Promise<void> {
  const game = await make.game({ owner: (await actors()).owner, title: 'Bright Harbor' });
  await send('POST', '/operator/purchases', {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ game_id: game.id, email, currency: 'USD', amount: 499 }),
  });
}

test('sends nothing to a part of an email address', async () => {
  await sell('first,second@example.com');
  expect((await mail()).to).toBe('"first,second"@example.com');
});

test('sends a receipt with the page of each key', async () => {
  await sell('buyer@example.com');
  const sent = await mail();
  expect(sent.to).toBe('buyer@example.com');
  const browser = new Browser();
  await browser.get(pathIn(sent, 'download'));
  expect(browser.words).toContain('Bright Harbor');
});
