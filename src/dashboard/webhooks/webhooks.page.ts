import type { EventType } from '../../events/event-type';
import { ALL_OWN_GAMES } from '../../games/game-events';
import type { OwnWebhook } from '../../operator/webhooks/user-webhooks.service';
import { isSuccess, MAX_KEPT_ATTEMPTS } from '../../operator/webhooks/webhook-attempts.service';
import { MAX_URL_CHARACTERS } from '../../operator/webhooks/webhooks.service';
import type { WebhookAttempt } from '../../operator/webhooks/webhook-attempt.entity';
import { html, type Html } from '../layout/html';
import { formToken, type Page, SALES_PATH } from '../layout/layout';
import {
  changeForm,
  checkbox,
  choices,
  field,
  hasProblems,
  problemAt,
  type Problems,
  selectField,
} from '../layout/fields';
import {
  actions,
  alert,
  type Columns,
  confirmation,
  copyable,
  day,
  done,
  descriptionList,
  muted,
  number,
  tableOr,
  tag,
  timeElement,
} from '../layout/components';
import type { Visitor } from '../layout/visitor';

export const WEBHOOKS_PATH = '/user/settings/webhooks';

/** The title of an event, by its name. */
export type EventTitle = (name: string) => string;

/** The pages of subjects, by type; their path ends with the ID. */
const SUBJECT_PAGES: Record<string, string> = { purchase: SALES_PATH };

/** Other reasons are codes such as ECONNREFUSED, which developers can search for. */
const REASONS: Record<string, string> = {
  timeout: 'no response within 10 s',
  'no address': 'host name not found',
  'private address': 'private IP address',
};

export interface WebhookDraft {
  url: string;
  game: string;
  events: string[];
}

export const webhookPath = (id: number) => `${WEBHOOKS_PATH}/${id}`;

/** Leaves out the query, which may contain a token. */
export const webhookName = ({ url }: Pick<OwnWebhook, 'url'>): string =>
  url.replace(/^https?:\/\/|\?.*/g, '');

export const outcomeText = (outcome: number | string): string => REASONS[outcome] ?? String(outcome);

export const listPage = (webhooks: OwnWebhook[], canEditGames: boolean): Page => ({
  section: WEBHOOKS_PATH,
  title: 'Webhooks',
  main: (notice) =>
    html`<div class="head">
        <h1>Webhooks</h1>
        ${canEditGames && html`<a class="button" href="${WEBHOOKS_PATH}/new">Add webhook</a>`}
      </div>
      <p class="lead">
        Webhooks notify your own systems of sales, refunds and pushed builds of the games that you can edit.
      </p>
      ${done(notice.message)}
      ${tableOr(canEditGames ? 'You don’t have any webhooks yet.' : 'Webhooks are for sellers. You can’t edit any games yet.', 'Your webhooks', OWN_WEBHOOK_COLUMNS, webhooks)}`,
});

const describeGames = ({ game_id, title }: OwnWebhook): string =>
  title ?? (game_id === ALL_OWN_GAMES ? 'All your games' : 'A game that you can no longer edit');

export const result = (outcome: string): Html =>
  tag(outcomeText(outcome), isSuccess({ status: outcome }) ? undefined : 'warning');

const lastResult = ({ last_at, last_outcome, ended_at }: OwnWebhook): Html =>
  html`${last_outcome === null ? muted('None yet') : html`${result(last_outcome)} ${timeElement(last_at!)}`}
  ${ended_at && html`<br />${tag('Disabled', 'warning')}`}`;

const OWN_WEBHOOK_COLUMNS: Columns<OwnWebhook> = {
  URL: (webhook) => html`<a class="wrap" href="${webhookPath(webhook.id)}">${webhookName(webhook)}</a>`,
  Games: describeGames,
  'Last result': lastResult,
  Pending: number(({ waiting }) => waiting),
};

export const formPage = (
  visitor: Visitor,
  games: { id: number; title: string }[],
  types: EventType[],
  { url, game, events }: WebhookDraft,
  problems: Problems = {},
): Page => ({
  section: WEBHOOKS_PATH,
  title: 'Add a webhook',
  status: hasProblems(problems) ? 400 : 200,
  main: html`<h1>Add a webhook</h1>
    ${changeForm(
      visitor,
      { action: WEBHOOKS_PATH, button: 'Add webhook', back: WEBHOOKS_PATH },
      html`${field({ id: 'url', label: 'Endpoint URL', type: 'url', value: url, required: true, maxlength: MAX_URL_CHARACTERS, placeholder: 'https://example.com/hook', problem: problems.url })}
      ${selectField('game', 'Games', [['', 'All games that you can edit'], ...games.map(({ id, title }) => [String(id), title] as const)], game, problems.game)}
      ${problemAt('game', problems.game)}
      ${choices(
        'events',
        'Events',
        problems.events,
        types.map(({ name, title }) =>
          checkbox(
            `event ${name}`,
            events.includes(name),
            html`${title} <small><code>${name}</code></small>`,
          ),
        ),
      )}`,
    )}`,
});

type ShownAttempt = Omit<WebhookAttempt, 'webhook' | 'data'>;

export const onePage = (
  visitor: Visitor,
  webhook: OwnWebhook,
  attempts: ShownAttempt[],
  eventTitle: EventTitle,
): Page => {
  const path = webhookPath(webhook.id);
  return {
    section: WEBHOOKS_PATH,
    title: webhookName(webhook),
    main: (notice) =>
      html`<h1 class="wrap">${webhookName(webhook)}</h1>
        ${notice.problem && alert(notice.problem)} ${done(notice.message)}
        ${notice.secret && secretCard(notice.secret)}
        <section class="card stack" aria-label="About this webhook">
          ${descriptionList({
            'Endpoint URL': html`<code>${webhook.url}</code>`,
            Games: describeGames(webhook),
            Events: webhook.events.map(eventTitle).join(', '),
            Added: day(webhook.created_at),
            'Last result': lastResult(webhook),
            'Pending messages': webhook.waiting,
          })}
          ${
            webhook.ended_at &&
            html`<form method="post" action="${path}/enable" class="stack">
              ${formToken(visitor)}
              <p>This webhook was disabled because your receiver responded with 410 Gone.</p>
              <div class="buttons"><button>Enable again</button></div>
            </form>`
          }
          <form method="post" action="${path}/test" class="buttons">
            ${formToken(visitor)}
            <button>Send test</button>
            <a class="button quiet" href="${path}/rotate">Rotate secret</a>
            <a class="button quiet danger" href="${path}/delete">Delete</a>
          </form>
        </section>
        <h2>Latest deliveries</h2>
        ${tableOr(
          `No messages have been sent yet. The last ${MAX_KEPT_ATTEMPTS} deliveries appear here.`,
          'Latest deliveries',
          attemptColumns(visitor, eventTitle),
          attempts,
        )}`,
  };
};

const attemptName = ({ event, subject_id }: ShownAttempt, eventTitle: EventTitle) =>
  subject_id === null ? eventTitle(event) : `${eventTitle(event)} ${subject_id}`;

const attemptColumns = (visitor: Visitor, eventTitle: EventTitle): Columns<ShownAttempt> => ({
  Event: (attempt) => {
    const page = attempt.subject_type === null ? undefined : SUBJECT_PAGES[attempt.subject_type];
    const name = attemptName(attempt, eventTitle);
    return page === undefined ? name : html`<a href="${page}/${attempt.subject_id}">${name}</a>`;
  },
  Time: ({ attempted_at }) => timeElement(attempted_at),
  Result: ({ outcome }) => result(outcome),
  Duration: number(({ duration_ms }) => `${duration_ms} ms`),
  Response: ({ response }) => (response ? html`<small class="wrap">${response}</small>` : muted('Empty')),
  'Send again': actions(
    (attempt) =>
      attempt.subject_id !== null &&
      html`<form method="post" action="${webhookPath(attempt.webhook_id)}/attempts/${attempt.id}">
        ${formToken(visitor)}<button class="quiet">
          Send again<span class="hidden"> ${attemptName(attempt, eventTitle)}</span>
        </button>
      </form>`,
  ),
});

const secretCard = (secret: string): Html =>
  html`<section class="card fresh stack" aria-labelledby="fresh">
    <h2 id="fresh">Signing secret</h2>
    <p>
      Copy it now, because it isn’t shown again. Your receiver needs it to verify that a message comes from
      this store, as described by
      <a href="https://www.standardwebhooks.com" rel="noreferrer">Standard Webhooks</a>.
    </p>
    ${copyable('secret', 'Secret', secret)}
  </section>`;

export const rotatePage = (visitor: Visitor, webhook: OwnWebhook): Page =>
  confirmation(visitor, {
    section: WEBHOOKS_PATH,
    title: 'Rotate secret',
    question: 'Replace the signing secret?',
    details: html`<p class="wrap"><strong>${webhookName(webhook)}</strong></p>
      <p>
        From now on, messages are signed with the new secret. Messages that your receiver rejects until you
        configure the new secret are sent again.
      </p>`,
    action: `${webhookPath(webhook.id)}/rotate`,
    button: 'Rotate secret',
    back: webhookPath(webhook.id),
  });

export const deletePage = (visitor: Visitor, webhook: OwnWebhook): Page =>
  confirmation(visitor, {
    section: WEBHOOKS_PATH,
    title: 'Delete a webhook',
    question: 'Delete this webhook?',
    details: html`<p class="wrap"><strong>${webhookName(webhook)}</strong></p>
      <p>It receives no more messages, and its pending messages are deleted. This can’t be undone.</p>`,
    action: `${webhookPath(webhook.id)}/delete`,
    button: 'Delete webhook',
    back: webhookPath(webhook.id),
  });
