import type { ApplicationFields } from '../../auth/oauth/applications.service';
import type { OauthApplication } from '../../auth/accounts/oauth-application.entity';
import { SCOPES_OF_OTHERS } from '../../auth/access/scopes';
import {
  changeForm,
  checkbox,
  choices,
  described,
  hasProblems,
  nameField,
  problemAt,
  type Problems,
  scopeBoxes,
} from '../layout/fields';
import { html, type Html } from '../layout/html';
import type { Page } from '../layout/layout';
import {
  actions,
  alert,
  type Columns,
  confirmation,
  copyable,
  day,
  done,
  linkButton,
  tableOr,
} from '../layout/components';
import type { Visitor } from '../layout/visitor';

export const APPLICATIONS_PATH = '/user/settings/oauth-apps';

export const applicationPath = (client_id: string) => `${APPLICATIONS_PATH}/${encodeURIComponent(client_id)}`;

export const applicationsPage = (applications: OauthApplication[]): Page => ({
  section: APPLICATIONS_PATH,
  title: 'Your apps',
  main: (notice) =>
    html`<div class="head">
        <h1>Your apps</h1>
        <a class="button" href="${APPLICATIONS_PATH}/new">Register an app</a>
      </div>
      <p class="lead">Apps that you registered. They can ask users for permission to act on their behalf.</p>
      ${done(notice.message)}
      ${tableOr('You haven’t registered any apps yet.', 'Your apps', APPLICATION_COLUMNS, applications)}`,
});

const APPLICATION_COLUMNS: Columns<OauthApplication> = {
  Name: ({ client_id, name }) => html`<a href="${applicationPath(client_id)}">${name}</a>`,
  'Client ID': ({ client_id }) => html`<code>${client_id}</code>`,
  Registered: ({ created_at }) => day(created_at),
  Edit: actions(({ client_id, name }) => linkButton(applicationPath(client_id), 'Edit', name)),
};

/** `application`: the app to change; without it, a new one is registered. */
export const applicationPage = (
  visitor: Visitor,
  fields: ApplicationFields,
  {
    application,
    problems = {},
    problem,
  }: { application?: OauthApplication; problems?: Problems; problem?: string } = {},
): Page => {
  const title = application ? application.name : 'Register an app';
  const path = application && applicationPath(application.client_id);
  return {
    section: APPLICATIONS_PATH,
    title,
    status: problem || hasProblems(problems) ? 400 : 200,
    main: (notice) =>
      html`<h1>${title}</h1>
        ${done(notice.message)} ${problem && alert(problem)}
        ${
          application &&
          html`<section class="card stack" aria-label="For your program">
            ${copyable('client-id', 'Client ID', application.client_id)}
          </section>`
        }
        ${changeForm(
          visitor,
          {
            action: path ?? APPLICATIONS_PATH,
            button: application ? 'Save' : 'Register',
            back: APPLICATIONS_PATH,
          },
          html`${nameField({ id: 'name', label: 'Name', value: fields.name, problem: problems.name })}
          ${redirectUrisField(fields, problems)} ${scopeChoices(fields, problems)} ${flowChoices(fields)}`,
        )}
        ${path && html`<p><a class="button quiet danger" href="${path}/delete">Delete this app</a></p>`}`,
  };
};

const redirectUrisField = ({ redirect_uris }: ApplicationFields, problems: Problems): Html =>
  html`<div class="field">
    <label for="redirect_uris">Redirect URIs</label>
    <textarea
      id="redirect_uris"
      name="redirect_uris"
      rows="3"
      required
      spellcheck="false"
      ${described('redirect_uris', problems.redirect_uris, 'redirect_help')}
      placeholder="https://game.example/signed-in"
    >
${redirect_uris.join('\n')}</textarea>
    ${problemAt('redirect_uris', problems.redirect_uris)}
    <small id="redirect_help"
      >One per line, exactly as your program sends them. <code>http://127.0.0.1/…</code>,
      <code>http://[::1]/…</code> and <code>http://localhost/…</code> allow any port, for a program on the
      user’s computer. <code>urn:ietf:wg:oauth:2.0:oob</code> shows a code for the user to copy.</small
    >
  </div>`;

const scopeChoices = ({ scopes, may_start_games }: ApplicationFields, problems: Problems): Html =>
  choices(
    'scopes',
    'Scopes that it can request',
    problems.scopes,
    html`${scopeBoxes(SCOPES_OF_OTHERS, scopes)}
    ${checkbox(
      'may_start_games',
      may_start_games,
      html`Start games for users<br /><small
          >For launchers: the app creates tokens that identify the player to a game.</small
        >`,
    )}`,
  );

const flowChoices = ({ implicit_allowed }: ApplicationFields): Html =>
  choices(
    'flows',
    'OAuth flows',
    undefined,
    checkbox(
      'implicit_allowed',
      implicit_allowed,
      html`Allow tokens in the redirect URI<br /><small
          >For older programs that use <code>response_type=token</code>. New programs should use authorization
          codes, which are always allowed.</small
        >`,
    ),
  );

export const deleteApplicationPage = (visitor: Visitor, { client_id, name }: OauthApplication): Page =>
  confirmation(visitor, {
    section: APPLICATIONS_PATH,
    title: 'Delete an app',
    question: `Delete ${name}?`,
    details: html`<p>
      The app loses access to the accounts of all users, and its tokens stop working immediately. This can’t
      be undone.
    </p>`,
    action: `${applicationPath(client_id)}/delete`,
    button: 'Delete the app',
    back: applicationPath(client_id),
  });
