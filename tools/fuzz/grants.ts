import { createHash, randomBytes } from 'node:crypto';
import fc, { type Arbitrary } from 'fast-check';
import { formMessage } from './ask';
import { forgetGrants } from './model/tenant-rows';
import { excerpt, Finding } from './oracles';
import type { Answered, Target } from './target';
import { Tenant } from './world';

/** One device that asks for access. What becomes of tokens is in model/token-steps.ts. */
export interface Grant {
  user: 1 | 2;
  scope: string;
  polls: number;
  decision: 'allow' | 'deny' | 'nothing';
  /** Whether the code is fetched by the poll and exchanged, or the device code itself is. */
  way: 'code' | 'device_code';
  verifier: 'right' | 'wrong' | 'absent';
}

/** Signs in and consents; sequences have their own. */
const TENANT = new Tenant(2);
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

export const grants: Arbitrary<Grant> = fc.record({
  user: fc.constantFrom(1, 2),
  scope: fc.constantFrom('profile:me', 'profile', 'collection:view profile:me', 'profile:me profile:me'),
  polls: fc.nat({ max: 2 }),
  decision: fc.constantFrom('allow', 'allow', 'allow', 'allow', 'deny', 'nothing'),
  way: fc.constantFrom('code', 'device_code'),
  verifier: fc.constantFrom('right', 'right', 'right', 'wrong', 'absent'),
});

class Device {
  private readonly verifier = randomBytes(32).toString('base64url');

  constructor(
    private readonly target: Target,
    private readonly grant: Grant,
  ) {}

  async run(): Promise<void> {
    const { scope, polls, decision, way } = this.grant;
    const code_challenge = createHash('sha256').update(this.verifier).digest('base64url');
    const asked = await this.post(
      '/oauth/device',
      { scope, code_challenge, code_challenge_method: 'S256' },
      200,
    );
    const { device_code, user_code } = asked.json as { device_code: string; user_code: string };
    for (let i = 0; i < polls; i++)
      await this.post('/oauth/device/poll', { device_code }, i === 0 ? 200 : 429);
    await this.decide(user_code);
    if (decision === 'nothing') return;
    const poll = (await this.post('/oauth/device/poll', { device_code }, 200)).json as {
      status: string;
      code?: string;
    };
    if (poll.status !== (decision === 'allow' ? 'approved' : 'denied'))
      throw new Finding('model', 'a device is told another decision', JSON.stringify(poll));
    const refused = decision === 'deny' || this.grant.verifier !== 'right';
    const answered = await this.post(
      '/oauth/token',
      way === 'code' && poll.code
        ? { grant_type: 'authorization_code', code: poll.code, ...this.proof }
        : { grant_type: DEVICE_GRANT, device_code, ...this.proof },
      refused ? 400 : 200,
    );
    if (!refused) await this.use((answered.json as { access_token: string }).access_token);
  }

  private get proof(): Record<string, string> {
    if (this.grant.verifier === 'absent') return {};
    return {
      code_verifier: this.grant.verifier === 'right' ? this.verifier : randomBytes(32).toString('base64url'),
    };
  }

  private async decide(code: string): Promise<void> {
    if (this.grant.decision === 'nothing') return;
    const session = await this.target.session(TENANT, this.grant.user);
    const shown = await session.get(`/user/oauth/device?code=${code}`);
    const proof = /name="shown" value="([^"]*)"/.exec(shown.answer.body)?.[1] ?? '';
    const { answer } = await session.post('/user/oauth/device', {
      code,
      shown: proof,
      decision: this.grant.decision,
    });
    if (shown.answer.status !== 200 || answer.status !== 200)
      throw new Finding('model', 'a device cannot be decided about', excerpt(answer));
  }

  private async use(access_token: string): Promise<void> {
    const headers: [string, string][] = [['Authorization', `Bearer ${access_token}`]];
    const operation = this.target.operation('GET /profile');
    const answered = await this.target.send({ method: 'GET', path: '/profile', headers }, { operation });
    this.expect('GET /profile', answered, 200);
  }

  private async post(path: string, fields: Record<string, string>, status: number): Promise<Answered> {
    const operation = this.target.operation(`POST ${path}`);
    const message = formMessage(path, { client_id: TENANT.clientId, ...fields });
    const answered = await this.target.send(message, { operation, makesCredential: true });
    this.expect(`POST ${path}`, answered, status);
    return answered;
  }

  private expect(what: string, { answer }: Answered, status: number): void {
    if (answer.status !== status)
      throw new Finding(
        'model',
        `${what} of a device answers ${answer.status} instead of ${status}`,
        excerpt(answer),
      );
  }
}

export const runGrant = (target: Target, grant: Grant) => new Device(target, grant).run();

/** Grants of one user share what is remembered of them: one after the other. */
export const resetGrants = ({ sql }: Target) => forgetGrants(sql, TENANT);
