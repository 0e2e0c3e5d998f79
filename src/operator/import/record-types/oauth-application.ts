import { boolean, idFor, type ValueType, scopes, text, texts, title } from '../value-types';
import { optional, required } from './fields';
import { recordType } from './record-type';

const uris = texts({ max: 2000, required: true });

const redirectUris: ValueType = {
  ...uris,
  allows: 'list of absolute URIs without a fragment, at least one',
  encode(value, reject) {
    if (Array.isArray(value)) {
      value.forEach((one: unknown, index) => {
        if (typeof one !== 'string') return;
        const uri = URL.canParse(one) ? new URL(one) : undefined;
        if (!uri || uri.hash || ['javascript:', 'data:', 'vbscript:'].includes(uri.protocol)) {
          reject('must be an absolute URI without a fragment', `[${index}]`);
        }
      });
    }
    return uris.encode(value, reject);
  },
};

export const OAUTH_APPLICATION_RECORD = recordType({
  name: 'oauth_application',
  table: 'oauth_applications',
  isDeletedByService: true,
  fields: [
    required('client_id', text({ max: 200, pattern: /^[\x21-\x7e]+$/, form: 'be printable ASCII' })),
    required('user_id', idFor('user')),
    required('name', title(100)),
    required('redirect_uris', redirectUris),
    required('scopes', scopes, { meaning: 'scopes that the app can request' }),
    optional('implicit_allowed', boolean, 'f', {
      meaning: 'allows the implicit flow, with the token in the redirect URI',
    }),
    optional('may_start_games', boolean, 'f', {
      meaning: 'can request permission to start games for its users',
    }),
  ],
});
