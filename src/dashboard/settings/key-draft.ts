import { parseKeyExpiry, MAX_DAYS } from '../../auth/keys/key-expiry';
import { covers } from '../../auth/access/credential';
import type { Scope } from '../../auth/access/scopes';
import type { Form } from '../../platform/input/form';
import { ALL_SCOPES, problemOfName } from '../layout/fields';

export const EXPIRY_DAYS = ['30', '90', '365'];

export interface KeyDraft {
  label: string;
  reach: 'everything' | 'some';
  scopes: Scope[];
  /** `never`, a number of days, or `date`. */
  expires: string;
  expires_on: string;
}

export const NEW_KEY: KeyDraft = {
  label: '',
  reach: 'some',
  scopes: ['profile:me'],
  expires: '90',
  expires_on: '',
};

export const problemOfLabel = (label: string) =>
  problemOfName(label, 'Enter a name by which you will recognize the key later.');

export const readLabel = (form: Form): string => form.title('label');

export function readKeyDraft(form: Form, now: number) {
  const draft: KeyDraft = {
    label: readLabel(form),
    reach: form.text('reach') === 'everything' ? 'everything' : 'some',
    scopes: ALL_SCOPES.filter((scope) => form.isChecked(`scope ${scope}`)),
    expires: form.text('expires') ?? NEW_KEY.expires,
    expires_on: form.text('expires_on') ?? '',
  };
  const { label, reach, scopes, expires, expires_on } = draft;
  const expires_at = parseKeyExpiry(expires === 'date' ? expires_on : expires, now);
  return {
    draft,
    problems: {
      label: problemOfLabel(label),
      scopes: reach === 'some' && scopes.length === 0 ? 'Select at least one permission.' : undefined,
      expires:
        expires_at === undefined
          ? `Enter a future date, at most ${MAX_DAYS / 365} years from now.`
          : expires !== 'date' && expires_on !== ''
            ? 'You also entered a date. Select “On a date”, or clear the date.'
            : undefined,
    },
    key: {
      label,
      scopes: reach === 'everything' ? null : scopes.filter((scope) => !isCovered(scope, scopes)),
      expires_at: expires_at ?? null,
    },
  };
}

const isCovered = (scope: Scope, chosen: Scope[]) =>
  chosen.some((other) => other !== scope && covers([other], scope));
