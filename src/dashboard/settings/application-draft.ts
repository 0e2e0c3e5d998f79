import type { ApplicationFields } from '../../auth/oauth/applications.service';
import { findProblem } from '../../auth/oauth/redirect-uris';
import type { Form } from '../../platform/input/form';
import { ALL_SCOPES, problemOfName } from '../layout/fields';

export const MAX_REDIRECT_URIS = 20;

export const EMPTY_APPLICATION: ApplicationFields = {
  name: '',
  redirect_uris: [],
  scopes: ['profile:me'],
  implicit_allowed: false,
  may_start_games: false,
};

export function readApplicationDraft(form: Form) {
  const name = form.title('name');
  const redirect_uris = [...new Set((form.text('redirect_uris') ?? '').split(/\s+/).filter(Boolean))];
  const scopes = ALL_SCOPES.filter((scope) => form.isChecked(`scope ${scope}`));
  return {
    name,
    redirect_uris,
    scopes,
    implicit_allowed: form.isChecked('implicit_allowed'),
    may_start_games: form.isChecked('may_start_games'),
    problems: {
      name: problemOfName(name, 'Enter a name for the app.'),
      redirect_uris: problemOfAddresses(redirect_uris),
      scopes: scopes.length === 0 ? 'Select at least one scope.' : undefined,
    },
  };
}

function problemOfAddresses(addresses: string[]): string | undefined {
  if (addresses.length === 0) return 'Enter at least one redirect URI.';
  if (addresses.length > MAX_REDIRECT_URIS) return `Enter at most ${MAX_REDIRECT_URIS} redirect URIs.`;
  const wrong = addresses.filter((uri) => findProblem(uri) !== undefined).map((uri) => uri.slice(0, 200));
  if (wrong.length === 0) return undefined;
  return `${wrong.join(', ')}${wrong.length > 1 ? ': each' : ''} ${findProblem(wrong[0]!)}.`;
}
