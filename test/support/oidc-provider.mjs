// A certified OpenID Connect provider that signs in one person without asking. A separate program, because Jest can't
// load it. Its standard input has the person: a line of JSON with the claims, `sub` first; `null` cancels.
import { createInterface } from 'node:readline';
import Provider from 'oidc-provider';

let person = null;
const people = new Map();
createInterface({ input: process.stdin })
  .on('line', (line) => {
    person = JSON.parse(line);
    if (person) people.set(person.sub, person);
    console.log('ok');
  })
  .on('close', () => process.exit(0));

const [port, client_id, client_secret] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
  clients: [{ client_id, client_secret, redirect_uris: ['http://127.0.0.1/login/callback'] }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['preferred_username'] },
  features: { devInteractions: { enabled: false } },
  pkce: { required: () => true },
  findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => people.get(sub) }),
  interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
  async loadExistingGrant({ oidc }) {
    const grant = new oidc.provider.Grant({
      clientId: oidc.client.clientId,
      accountId: oidc.session.accountId,
    });
    grant.addOIDCScope('openid email profile');
    await grant.save();
    return grant;
  },
});
// The port of the service isn't known yet.
provider.Client.prototype.redirectUriAllowed = () => true;
provider.Client.prototype.postLogoutRedirectUriAllowed = () => true;
provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith('/interaction/')) return next();
  const result = person ? { login: { accountId: person.sub } } : { error: 'access_denied' };
  return provider.interactionFinished(ctx.req, ctx.res, result);
});
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));
