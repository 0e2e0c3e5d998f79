import { boolean, idOf, type Kind, scopes, text, texts, title } from '../kinds';
import { optional, required } from './fields';
import { recordType } from './record-type';

const uris = texts({ max: 2000, required: true });

const redirectUris: Kind = {
  ...uris,
  allows: 'list of absolute URIs without a fragment, at least one',
  encode(value, refuse) {
    if (Array.isArray(value)) {
      value.forEach((one: unknown, index) => {
        if (typeof one !== 'string') return;
        const uri = URL.canParse(one) ? new URL(one) : undefined;
        if (!uri || uri.hash || ['javascript:', 'data:', 'vbscript:'].includes(uri.protocol)) {
          refuse('must be an absolute URI without a fragment', `[${index}]`);
        }
      });
    }
    return uris.encode(value, refuse);
  },
};

export const OAUTH_APPLICATION = recordType({
  name: 'oauth_application',
  table: 'oauth_applications',
  isDeletedByService: true,
  fields: [
    required('client_id', text({ max: 200, pattern: /^[\x21-\x7e]+$/, form: 'be printable ASCII' })),
    required('user_id', idOf('user')),
    required('name', title(100)),
    required('redirect_uris', redirectUris),
    required('scopes', scopes, { meaning: 'those that it may ask for' }),
    optional('implicit_allowed', boolean, 'f', { meaning: 'it takes tokens in the redirect address' }),
    optional('may_start_games', boolean, 'f', { meaning: 'it asks its users to start games as them' }),
  ],
});
