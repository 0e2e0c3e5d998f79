import type { OauthDeviceRequest } from '../../auth/oauth/oauth-device-request.entity';
import { field } from '../layout/fields';
import { html } from '../layout/html';
import type { FormResult, Page } from '../layout/layout';
import { alert } from '../layout/components';
import type { SignedInVisitor } from '../layout/visitor';
import { consentPage, staysSignedIn } from './consent.page';
import type { Settings } from '../../platform/config/settings';

const DEVICE_PATH = '/user/oauth/device';

export const entryPage = (typed = '', { problem, ...response }: FormResult = {}): Page => ({
  title: 'Connect a device',
  ...response,
  single: true,
  main: html`<h1>Connect a device</h1>
    ${problem && alert(problem)}
    <form method="get" action="${DEVICE_PATH}" class="card stack">
      ${field({ id: 'code', label: 'Code shown on your device', value: typed, class: 'code-entry', required: true, maxlength: 20, placeholder: 'XXXX-XXXX', autocapitalize: 'characters', spellcheck: 'false', autofocus: true })}
      <button>Continue</button>
    </form>`,
});

/** `proof`: proves that the page has shown the code. */
export const deviceConsentPage = (
  visitor: SignedInVisitor,
  { application, scopes, user_code }: OauthDeviceRequest,
  proof: string,
  { LENIENT_CLIENTS }: Settings,
): Page =>
  consentPage(visitor, {
    application: application!,
    scopes,
    question: html`Allow <bdi>${application!.name}</bdi> on your device to act on your behalf?`,
    warning: html`<p>
        Continue only if a device in front of you shows this code. Never enter a code that someone sent you:
      </p>
      <p class="code-entry">${user_code}</p>`,
    afterwards: html`${staysSignedIn(LENIENT_CLIENTS)}`,
    action: DEVICE_PATH,
    fields: { code: user_code, shown: proof },
  });

export const decidedPage = (allowed: boolean): Page => ({
  title: allowed ? 'Device connected' : 'Access denied',
  single: true,
  main: allowed
    ? html`<h1>Device connected</h1>
        <p>Return to your device. It continues automatically within a few seconds.</p>`
    : html`<h1>Access denied</h1>
        <p>The device isn’t connected to your account.</p>`,
});
