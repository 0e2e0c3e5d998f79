import { type ChildProcess, spawn } from 'node:child_process';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { freePort } from '../../src/dev/embedded/server';

export const CLIENT_ID = 'gamewharf';
export const CLIENT_SECRET = 'a secret of the client, with some length';

/** What the provider says about a person. */
export interface Person {
  sub: string;
  email?: string;
  email_verified?: boolean;
  preferred_username?: string;
}

/** `oidc-provider`, in a separate process. */
export class RealProvider {
  issuer = '';
  private child!: ChildProcess;
  private lines!: Interface;

  async start(): Promise<void> {
    const port = await freePort();
    this.issuer = `http://127.0.0.1:${port}`;
    const program = join(__dirname, 'oidc-provider.mjs');
    this.child = spawn(process.execPath, [program, String(port), CLIENT_ID, CLIENT_SECRET], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    this.lines = createInterface({ input: this.child.stdout! });
    await once(this.lines, 'line');
  }

  /** `person` is null if the person cancels. */
  async signsIn(person: Person | null): Promise<void> {
    this.child.stdin!.write(`${JSON.stringify(person)}\n`);
    await once(this.lines, 'line');
  }

  stop(): void {
    this.child.kill();
  }
}

/** Follows the provider's redirects in a new browser; returns the path and query of the callback. */
export async function signInAt(url: string): Promise<string> {
  const cookies = new Map<string, string>();
  const { origin } = new URL(url);
  for (let next = url; ;) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(next, { redirect: 'manual', headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [pair] = line.split(';');
      cookies.set(pair!.slice(0, pair!.indexOf('=')), pair!.slice(pair!.indexOf('=') + 1));
    }
    const location = response.headers.get('location');
    if (!location) throw new Error(`no redirect: ${response.status} ${await response.text()}`);
    const target = new URL(location, next);
    if (target.origin !== origin) return target.pathname + target.search;
    next = target.href;
  }
}

/** A provider that lies: tests decide what it responds. */
export class FakeProvider {
  issuer = '';
  requests: string[] = [];
  /** Changes the claims of the next ID tokens. */
  claims: (claims: JWTPayload) => JWTPayload = (claims) => claims;
  /** Signs ID tokens instead of the published key. */
  sign?: (claims: JWTPayload) => Promise<string>;
  metadata: object = {};
  /** Responds instead of the endpoint. */
  responds?: (path: string, res: ServerResponse) => boolean;
  kid = '1';
  private server!: Server;
  private keys!: Awaited<ReturnType<typeof generateKeyPair>>;
  private nonce = '';

  async start(): Promise<void> {
    this.keys = await generateKeyPair('RS256');
    this.server = createServer((req, res) => void this.respond(req, res)).listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.issuer = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  reset(): void {
    this.claims = (claims) => claims;
    this.sign = undefined;
    this.metadata = {};
    this.responds = undefined;
    this.requests = [];
  }

  async rotate(): Promise<void> {
    this.keys = await generateKeyPair('RS256');
    this.kid = String(Number(this.kid) + 1);
  }

  /** The callback of an authorization request. */
  callback(url: string, changes: Record<string, string | undefined> = {}): string {
    const { searchParams } = new URL(url);
    this.nonce = searchParams.get('nonce')!;
    const query = { code: 'a-code', state: searchParams.get('state')!, iss: this.issuer, ...changes };
    const given = Object.entries(query).filter((one): one is [string, string] => one[1] !== undefined);
    return `/login/callback?${new URLSearchParams(given).toString()}`;
  }

  private async respond(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const path = req.url!.split('?')[0]!;
    this.requests.push(path);
    if (this.responds?.(path, res)) return;
    const body = await this.buildBody(path);
    res.setHeader('Content-Type', 'application/json');
    res.end(JSON.stringify(body));
  }

  private async buildBody(path: string): Promise<object> {
    const { issuer } = this;
    if (path === '/.well-known/openid-configuration')
      return {
        issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
        authorization_response_iss_parameter_supported: true,
        ...this.metadata,
      };
    if (path === '/jwks')
      return {
        keys: [{ ...(await exportJWK(this.keys.publicKey)), kid: this.kid, alg: 'RS256', use: 'sig' }],
      };
    const now = Math.floor(Date.now() / 1000);
    const claims = this.claims({
      iss: issuer,
      sub: 'somebody',
      aud: CLIENT_ID,
      iat: now,
      exp: now + 300,
      nonce: this.nonce,
    });
    const sign =
      this.sign ??
      ((payload) =>
        new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid: this.kid }).sign(this.keys.privateKey));
    return { access_token: 'x', token_type: 'Bearer', id_token: await sign(claims) };
  }
}
