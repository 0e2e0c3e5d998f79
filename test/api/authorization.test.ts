import { ModulesContainer } from '@nestjs/core';
import type { Express } from 'express';
import { isForOperators } from '../../src/auth/access/access';
import { ALL_PERMISSIONS } from '../../src/operator/tokens/operator-may';
import { OperatorTokensService } from '../../src/operator/tokens/operator-tokens.service';
import { type Route, listRoutes } from '../../src/auth/access/routes';
import { covers } from '../../src/auth/access/credential';
import { type Scope, SCOPES } from '../../src/auth/access/scopes';
import { type Actor, anonymous } from '../support/actor';
import { theApp, useStore } from '../support/app';
import { type HttpResponse, failure } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { OPERATOR_TOKEN } from '../support/importing';
import { forge } from '../support/tokens';

// Each test sends a request to every route.
jest.setTimeout(300_000);
useStore({ RATE_LIMIT: 'off', SIGN_UP: 'true', OPERATOR_TOKEN });

/** Objects that one user owns and another administers. For other users, the response is 404 where the object can be hidden. */
interface Fixtures {
  game: number;
  collection: number;
  private_collection: number;
  /** A game in both collections. */
  entry: number;
  /** A game without purchases and download keys. */
  unsold: number;
  /** A download key of the game. */
  key: number;
  upload: number;
  build: number;
  /** A bundle that both users bought, with the entry. */
  bundle: number;
}

interface Call {
  path: string;
  form?: Record<string, unknown>;
}

type CallOn = (fixtures: Fixtures) => Call;

/** The expected responses of one route for valid credentials: `rejected` where the object belongs to someone else. */
interface Row {
  call: CallOn;
  success: number;
  rejected?: HttpResponse;
  missing?: HttpResponse;
  /** Whether the route accepts API keys only, and no JWT with any scope. */
  isForKeys?: true;
  /** Whether a game's JWT is accepted for that game only, and each write gets a new game. */
  isOfOneGame?: true;
  /** The responses for users whom other rules reject. */
  others?: Partial<Record<'admin' | 'developer' | 'stranger', HttpResponse>>;
}

let titles = 0;

const on = (path: string, form?: Record<string, unknown>): Call => ({ path, form });
const MISSING: Fixtures = {
  game: 4e6,
  collection: 4e6,
  private_collection: 4e6,
  entry: 4e6,
  unsold: 4e6,
  key: 4e6,
  upload: 4e6,
  build: 4e6,
  bundle: 4e6,
};

/** The route reads no credential. */
const open = (path: string, success = 200): Row => ({ call: () => on(path), success });
/**
 * A page ignores API credentials. Without a session it redirects to the sign-in page, and a form without one is
 * rejected.
 */
const page = (path: string): Row => open(path, 303);
const pageForm = (path: string): Row => ({ call: () => on(path, {}), success: 403 });
/** The route only concerns the caller. */
const own = (call: CallOn): Row => ({ call, success: 200 });
/** The route concerns an object. Callers without access get either the response for a missing object or a 403. */
const editors = (call: CallOn, missing: HttpResponse, rejected = missing): Row => ({
  call,
  success: 200,
  rejected,
  missing,
});

/** Writes to builds of a game. */
const pushes = (call: CallOn, missing: HttpResponse): Row => ({
  ...editors(call, missing),
  isOfOneGame: true,
});

/** The path contains the API key, or `jwt` if the JWT is in the header, which is always sent. */
const legacyPath = (path: string, credential: string | undefined) =>
  path.replace(':KEY', credential === undefined ? 'key' : isJwt(credential) ? 'jwt' : credential);
const isJwt = (credential: string) => credential.includes('.');

const noGame = failure(404, 'invalid game');
const noUpload = failure(404, 'invalid upload');
const noBuild = failure(404, 'invalid build');
const noBundle = failure(404, 'invalid bundle');
const noCollection = failure(404, 'invalid collection');
const notTheirs = failure(403, "you can't edit this collection");
/** Changes a collection that everyone can see and only its owner and admins can change. */
const changes = (path: string, form: (fixtures: Fixtures) => Record<string, unknown> = () => ({})): Row =>
  editors(
    (fixtures) => on(`/collections/${fixtures.collection}${path}`, form(fixtures)),
    noCollection,
    notTheirs,
  );

/** One line per route. A route without a line fails the build. */
const TABLE: Record<string, Row> = {
  'GET /': open('/'),
  'GET /.well-known/jwks.json': open('/.well-known/jwks.json'),
  'GET /api/1/:KEY/credentials/info': own(() => on('/api/1/:KEY/credentials/info')),
  'GET /api/1/:KEY/game/:game_id/download_keys': editors(
    ({ game }) => on(`/api/1/:KEY/game/${game}/download_keys?email=buyer@example.com`),
    noGame,
  ),
  'GET /api/1/:KEY/game/:game_id/purchases': editors(
    ({ game }) => on(`/api/1/:KEY/game/${game}/purchases?email=buyer@example.com`),
    noGame,
  ),
  'GET /api/1/:KEY/game/:game_id': editors(({ game }) => on(`/api/1/:KEY/game/${game}`), noGame),
  'GET /api/1/:KEY/my-owned-keys': own(() => on('/api/1/:KEY/my-owned-keys')),
  'GET /api/1/:KEY/me': own(() => on('/api/1/:KEY/me')),
  'GET /api/1/:KEY/my-games': own(() => on('/api/1/:KEY/my-games')),
  'GET /.well-known/oauth-authorization-server': open('/.well-known/oauth-authorization-server'),
  'GET /assets/:name': open('/assets/nothing.css', 404),
  'GET /bundles/:bundle_id/bundle-games': editors(
    ({ bundle }) => on(`/bundles/${bundle}/bundle-games`),
    noBundle,
  ),
  'POST /bundles/:bundle_id/claim-game': {
    ...editors(({ bundle, entry }) => on(`/bundles/${bundle}/claim-game`, { game_id: entry }), noBundle),
    isForKeys: true,
  },
  'GET /collections/:collection_id': editors(
    ({ private_collection }) => on(`/collections/${private_collection}`),
    noCollection,
  ),
  'GET /collections/:collection_id/collection-games': editors(
    ({ private_collection }) => on(`/collections/${private_collection}/collection-games`),
    noCollection,
  ),
  'GET /credentials/info': own(() => on('/credentials/info')),
  'GET /login/callback': open('/login/callback', 404),
  'GET /login/provider': open('/login/provider', 404),
  'GET /logout': open('/logout', 404),
  'GET /setup': open('/setup', 404),
  'POST /setup': { call: () => on('/setup', {}), success: 404 },
  'GET /user/settings/identities': page('/user/settings/identities'),
  'GET /user/settings/identities/cancel': page('/user/settings/identities/cancel'),
  'GET /user/settings/identities/connect': page('/user/settings/identities/connect'),
  'POST /user/settings/identities': pageForm('/user/settings/identities'),
  'POST /user/settings/identities/:identity_id/disconnect': pageForm(
    '/user/settings/identities/1/disconnect',
  ),
  'GET /developers': open('/developers', 404),
  'GET /docs': open('/docs'),
  'GET /docs/endpoints/:id': open('/docs/endpoints/profileProfile'),
  'GET /docs/operator': open('/docs/operator'),
  'GET /games/:game_id': editors(({ game }) => on(`/games/${game}`), noGame),
  'GET /api/1/:KEY/game/:game_id/uploads': editors(
    ({ game }) => on(`/api/1/:KEY/game/${game}/uploads`),
    noGame,
  ),
  'GET /api/1/:KEY/upload/:upload_id/download': editors(
    ({ upload }) => on(`/api/1/:KEY/upload/${upload}/download`),
    noUpload,
  ),
  'GET /builds/:build_id': editors(({ build }) => on(`/builds/${build}`), noBuild),
  'GET /builds/:build_id/download/:file_type/:sub_type': {
    ...editors(({ build }) => on(`/builds/${build}/download/archive/default`), noBuild),
    success: 302,
  },
  'GET /download/:key': open('/download/unknown', 404),
  'POST /download/:key/claim': pageForm('/download/unknown/claim'),
  'POST /download/:key/files/:upload_id': pageForm('/download/unknown/files/1'),
  'GET /builds/:build_id/upgrade-paths/:target_build_id': editors(
    ({ build }) => on(`/builds/${build}/upgrade-paths/${build}`),
    noBuild,
  ),
  'GET /files/:token/:filename': open('/files/0.x.y/moon.zip', 403),
  'POST /upload-sessions/:token': open('/upload-sessions/x.y', 404),
  'PUT /upload-sessions/:token': open('/upload-sessions/x.y', 404),
  'POST /games': {
    call: () => on('/games', { title: `New title ${++titles}` }),
    success: 200,
    others: { stranger: failure(403, 'developer account required') },
  },
  'POST /games/:game_id': {
    ...editors(({ game }) => on(`/games/${game}`, { title: 'Other' }), noGame),
    isOfOneGame: true,
  },
  'POST /games/:game_id/delete': {
    ...editors(({ unsold }) => on(`/games/${unsold}/delete`, {}), noGame),
    isOfOneGame: true,
    others: { admin: failure(403, "you can't delete this game") },
  },
  'GET /games/:game_id/uploads': editors(({ game }) => on(`/games/${game}/uploads`), noGame),
  'POST /games/:game_id/download-sessions': editors(
    ({ game }) => on(`/games/${game}/download-sessions`, {}),
    noGame,
  ),
  'GET /uploads/:upload_id': editors(({ upload }) => on(`/uploads/${upload}`), noUpload),
  'GET /uploads/:upload_id/builds': editors(({ upload }) => on(`/uploads/${upload}/builds`), noUpload),
  'GET /uploads/:upload_id/download': {
    ...editors(({ upload }) => on(`/uploads/${upload}/download`), noUpload),
    success: 302,
  },
  'GET /users/:user_id': own(() => on(`/users/${owner.id}`)),
  'GET /wharf/channels': editors(({ game }) => on(`/wharf/channels?game_id=${game}`), noGame),
  'GET /wharf/channels/:channel_name': editors(
    ({ game }) => on(`/wharf/channels/windows?game_id=${game}`),
    noGame,
  ),
  'GET /wharf/status': own(() => on('/wharf/status')),
  'GET /games/:game_id/ownership': editors(({ game }) => on(`/games/${game}/ownership`), noGame),
  'GET /games/:game_id/download_keys': editors(
    ({ game }) => on(`/games/${game}/download_keys?email=buyer@example.com`),
    noGame,
  ),
  'POST /games/:game_id/download_keys': editors(
    ({ game }) => on(`/games/${game}/download_keys`, { count: 2 }),
    noGame,
  ),
  'POST /games/:game_id/download_keys/:download_key_id/revoke': editors(
    ({ game, key }) => on(`/games/${game}/download_keys/${key}/revoke`, {}),
    noGame,
  ),
  'GET /games/:game_id/purchases': editors(
    ({ game }) => on(`/games/${game}/purchases?email=buyer@example.com`),
    noGame,
  ),
  'GET /games/:game_id/sales': editors(({ game }) => on(`/games/${game}/sales`), noGame),
  'GET /health/live': open('/health/live'),
  'GET /health/ready': open('/health/ready'),
  'GET /openapi.json': open('/openapi.json'),
  'GET /llms.txt': open('/llms.txt'),
  'GET /operator/docs': open('/operator/docs'),
  'GET /operator/openapi.json': open('/operator/openapi.json'),
  'GET /operator/metrics': open('/operator/metrics'),
  'POST /operator/import': { call: () => on('/operator/import', {}), success: 415 },
  'POST /operator/people/erase': { call: () => on('/operator/people/erase', {}), success: 400 },
  'POST /operator/links': { call: () => on('/operator/links', { request_id: 4e6 }), success: 404 },
  'POST /operator/users/:user_id/link': {
    call: () => on('/operator/users/4000000/link', { purpose: 'sign_in' }),
    success: 404,
  },
  'POST /operator/users/:user_id/erase': {
    call: () => on('/operator/users/4000000/erase', {}),
    success: 404,
  },
  'POST /operator/users/:user_id/export': {
    call: () => on('/operator/users/4000000/export', {}),
    success: 404,
  },
  'POST /operator/purchases': { call: () => on('/operator/purchases', {}), success: 400 },
  'POST /operator/purchases/:purchase_id/refund': {
    call: () => on('/operator/purchases/4000000/refund', {}),
    success: 404,
  },
  'GET /login': open('/login'),
  'GET /forgot-password': open('/forgot-password'),
  'GET /links/:token': open('/links/unknown', 404),
  'GET /sign-up': open('/sign-up'),
  'GET /user/settings/account': page('/user/settings/account'),
  'GET /user/settings/account/erase': page('/user/settings/account/erase'),
  'GET /user/settings/account/erased': open('/user/settings/account/erased'),
  'GET /profile/collections': own(() => on('/profile/collections')),
  'GET /user/games': page('/user/games'),
  'GET /user/games/bundles/:bundle_id': page('/user/games/bundles/1'),
  'GET /user/games/downloads/:upload_id': page('/user/games/downloads/1'),
  'GET /user/games/redeem': page('/user/games/redeem'),
  'POST /user/games/redeem': pageForm('/user/games/redeem'),
  'GET /user/oauth': open('/user/oauth', 400),
  'GET /user/oauth/device': page('/user/oauth/device'),
  'GET /user/oauth/result': page('/user/oauth/result'),
  'GET /user/settings': page('/user/settings'),
  'GET /user/settings/api-keys': page('/user/settings/api-keys'),
  'GET /user/settings/api-keys/new': page('/user/settings/api-keys/new'),
  'GET /user/settings/api-keys/:key_id': page('/user/settings/api-keys/1'),
  'GET /user/settings/api-keys/:key_id/revoke': page('/user/settings/api-keys/1/revoke'),
  'GET /user/settings/authorized-apps': page('/user/settings/authorized-apps'),
  'GET /user/settings/authorized-apps/:grant_id/revoke': page('/user/settings/authorized-apps/1/revoke'),
  'GET /user/settings/collections': page('/user/settings/collections'),
  'GET /user/settings/collections/add': page('/user/settings/collections/add'),
  'GET /user/settings/collections/new': page('/user/settings/collections/new'),
  'GET /user/settings/collections/:collection_id': page('/user/settings/collections/1'),
  'GET /user/settings/collections/:collection_id/delete': page('/user/settings/collections/1/delete'),
  'GET /user/settings/data': page('/user/settings/data'),
  'GET /user/settings/games': page('/user/settings/games'),
  'GET /user/settings/games/new': page('/user/settings/games/new'),
  'POST /user/settings/games': pageForm('/user/settings/games'),
  'GET /user/settings/games/:game_id': page('/user/settings/games/1'),
  'GET /user/settings/games/:game_id/details': page('/user/settings/games/1/details'),
  'POST /user/settings/games/:game_id/details': pageForm('/user/settings/games/1/details'),
  'POST /user/settings/games/:game_id/publish': pageForm('/user/settings/games/1/publish'),
  'GET /user/settings/games/:game_id/files': page('/user/settings/games/1/files'),
  'POST /user/settings/games/:game_id/files/uploads': pageForm('/user/settings/games/1/files/uploads'),
  'GET /user/settings/games/:game_id/files/uploads/:id': page('/user/settings/games/1/files/uploads/1'),
  'POST /user/settings/games/:game_id/files/uploads/:id/complete': pageForm(
    '/user/settings/games/1/files/uploads/1/complete',
  ),
  'POST /user/settings/games/:game_id/files/uploads/:id/discard': pageForm(
    '/user/settings/games/1/files/uploads/1/discard',
  ),
  'GET /user/settings/games/:game_id/files/:upload_id': page('/user/settings/games/1/files/1'),
  'POST /user/settings/games/:game_id/files/:upload_id': pageForm('/user/settings/games/1/files/1'),
  'POST /user/settings/games/:game_id/files/:upload_id/move': pageForm('/user/settings/games/1/files/1/move'),
  'GET /user/settings/games/:game_id/files/:upload_id/delete': page('/user/settings/games/1/files/1/delete'),
  'POST /user/settings/games/:game_id/files/:upload_id/delete': pageForm(
    '/user/settings/games/1/files/1/delete',
  ),
  'GET /user/settings/games/:game_id/delete': page('/user/settings/games/1/delete'),
  'POST /user/settings/games/:game_id/delete': pageForm('/user/settings/games/1/delete'),
  'GET /user/settings/games/:game_id/builds': page('/user/settings/games/1/builds'),
  'POST /user/settings/games/:game_id/builds/:build_id/publish': pageForm(
    '/user/settings/games/1/builds/1/publish',
  ),
  'GET /user/settings/games/:game_id/keys': page('/user/settings/games/1/keys'),
  'GET /user/settings/games/:game_id/keys.csv': page('/user/settings/games/1/keys.csv'),
  'GET /user/settings/games/:game_id/keys/:download_key_id/revoke': page(
    '/user/settings/games/1/keys/1/revoke',
  ),
  'GET /user/settings/games/:game_id/keys/revoke': page('/user/settings/games/1/keys/revoke'),
  'POST /user/settings/games/:game_id/keys/revoke': pageForm('/user/settings/games/1/keys/revoke'),
  'POST /user/settings/games/:game_id/keys': pageForm('/user/settings/games/1/keys'),
  'POST /user/settings/games/:game_id/keys/:download_key_id/revoke': pageForm(
    '/user/settings/games/1/keys/1/revoke',
  ),
  'GET /user/settings/buyers': page('/user/settings/buyers'),
  'GET /user/settings/buyers.csv': page('/user/settings/buyers.csv'),
  'GET /user/settings/sales': page('/user/settings/sales'),
  'GET /user/settings/sales.csv': page('/user/settings/sales.csv'),
  'GET /user/settings/sales/figures': page('/user/settings/sales/figures'),
  'GET /user/settings/sales/search/:encrypted': page('/user/settings/sales/search/x'),
  'GET /user/settings/sales/:purchase_id': page('/user/settings/sales/1'),
  'GET /user/settings/sales/:purchase_id/buyer': page('/user/settings/sales/1/buyer'),
  'GET /user/settings/sales/:purchase_id/refund': page('/user/settings/sales/1/refund'),
  'POST /user/settings/sales/:purchase_id/refund': pageForm('/user/settings/sales/1/refund'),
  'GET /user/settings/sales/search': page('/user/settings/sales/search'),
  'POST /user/settings/sales/search': pageForm('/user/settings/sales/search'),
  'GET /user/settings/sales/figures.csv': page('/user/settings/sales/figures.csv'),
  'GET /user/settings/download-keys': page('/user/settings/download-keys'),
  'GET /user/settings/oauth-apps': page('/user/settings/oauth-apps'),
  'GET /user/settings/oauth-apps/:client_id': page('/user/settings/oauth-apps/x'),
  'GET /user/settings/oauth-apps/:client_id/delete': page('/user/settings/oauth-apps/x/delete'),
  'GET /user/settings/oauth-apps/new': page('/user/settings/oauth-apps/new'),
  'GET /user/settings/webhooks': page('/user/settings/webhooks'),
  'GET /user/settings/webhooks/new': page('/user/settings/webhooks/new'),
  'GET /user/settings/webhooks/:webhook_id': page('/user/settings/webhooks/1'),
  'GET /user/settings/webhooks/:webhook_id/delete': page('/user/settings/webhooks/1/delete'),
  'POST /user/settings/webhooks/:webhook_id/enable': pageForm('/user/settings/webhooks/1/enable'),
  'GET /user/settings/webhooks/:webhook_id/rotate': page('/user/settings/webhooks/1/rotate'),
  'GET /profile': own(() => on('/profile')),
  'GET /profile/owned-bundles': own(() => on('/profile/owned-bundles')),
  'GET /profile/owned-keys': own(() => on('/profile/owned-keys')),
  'GET /profile/games': own(() => on('/profile/games')),
  'GET /profile/builds': own(() => on('/profile/builds')),
  'POST /wharf/builds': pushes(({ game }) => on('/wharf/builds', { target: game, channel: 'osx' }), noGame),
  'GET /wharf/builds/:build_id': editors(({ build }) => on(`/wharf/builds/${build}`), noBuild),
  'POST /wharf/builds/:build_id/events': pushes(
    ({ build }) => on(`/wharf/builds/${build}/events`, { type: 'log', message: 'Started' }),
    noBuild,
  ),
  'GET /wharf/builds/:build_id/events': editors(({ build }) => on(`/wharf/builds/${build}/events`), noBuild),
  'POST /wharf/builds/:build_id/failures': pushes(
    ({ build }) => on(`/wharf/builds/${build}/failures`, { message: 'No space left' }),
    noBuild,
  ),
  'GET /wharf/builds/:build_id/files': editors(({ build }) => on(`/wharf/builds/${build}/files`), noBuild),
  'POST /wharf/builds/:build_id/files': {
    ...pushes(({ build }) => on(`/wharf/builds/${build}/files`, { type: 'patch' }), noBuild),
    // The build is complete.
    success: 409,
  },
  'POST /wharf/builds/:build_id/files/:file_id': {
    ...pushes(({ build }) => on(`/wharf/builds/${build}/files/1`, { size: 1 }), noBuild),
    success: 404,
  },
  'GET /wharf/builds/:build_id/files/:file_id/download': {
    ...editors(({ build }) => on(`/wharf/builds/${build}/files/${build}/download`), noBuild),
    success: 302,
  },
  'POST /wharf/builds/:build_id/publish': pushes(
    ({ build }) => on(`/wharf/builds/${build}/publish`),
    noBuild,
  ),
  'GET /wharf/latest': open('/wharf/latest?game_id=4000000&channel_name=windows', 404),
  'POST /collections': own(() => on('/collections', { title: 'New' })),
  'POST /collections/:collection_id': changes('', () => ({ title: 'Other' })),
  'POST /collections/:collection_id/add-game': changes('/add-game', ({ game }) => ({ game_id: game })),
  'POST /collections/:collection_id/collection-games/:game_id': editors(
    ({ collection, entry }) => on(`/collections/${collection}/collection-games/${entry}`, { blurb: 'Good' }),
    noCollection,
    notTheirs,
  ),
  'POST /collections/:collection_id/delete': changes('/delete'),
  'POST /collections/:collection_id/order': changes('/order', ({ entry }) => ({ game_ids: [entry] })),
  'POST /collections/:collection_id/remove-game': changes('/remove-game', ({ entry }) => ({
    game_id: entry,
  })),
  // API clients are rejected with 404 there. The responses to browsers are tested in test/dashboard/accounts.test.ts.
  'POST /docs/key': pageForm('/docs/key'),
  'POST /login': { call: () => on('/login', {}), success: 404 },
  'POST /forgot-password': { call: () => on('/forgot-password', {}), success: 404 },
  'POST /links/:token': pageForm('/links/unknown'),
  'POST /sign-up': { call: () => on('/sign-up', {}), success: 404 },
  'POST /user/settings/account/names': pageForm('/user/settings/account/names'),
  'POST /user/settings/account/addresses': pageForm('/user/settings/account/addresses'),
  'POST /user/settings/account/addresses/primary': pageForm('/user/settings/account/addresses/primary'),
  'POST /user/settings/account/addresses/remove': pageForm('/user/settings/account/addresses/remove'),
  'POST /user/settings/account/password': pageForm('/user/settings/account/password'),
  'POST /user/settings/account/sessions/end': pageForm('/user/settings/account/sessions/end'),
  'POST /user/settings/account/erase': pageForm('/user/settings/account/erase'),
  'POST /logout': pageForm('/logout'),
  'POST /oauth/device': { call: () => on('/oauth/device', {}), success: 400 },
  'POST /oauth/device/poll': { call: () => on('/oauth/device/poll', {}), success: 400 },
  'POST /oauth/revoke': { call: () => on('/oauth/revoke', {}), success: 400 },
  'POST /oauth/token': { call: () => on('/oauth/token', {}), success: 400 },
  'POST /user/oauth': pageForm('/user/oauth'),
  'POST /user/oauth/device': pageForm('/user/oauth/device'),
  'POST /user/settings/api-keys': pageForm('/user/settings/api-keys'),
  'POST /user/settings/api-keys/:key_id': pageForm('/user/settings/api-keys/1'),
  'POST /user/settings/api-keys/:key_id/revoke': pageForm('/user/settings/api-keys/1/revoke'),
  'POST /user/settings/authorized-apps/:grant_id/revoke': pageForm('/user/settings/authorized-apps/1/revoke'),
  'POST /user/settings/authorized-apps/game-tokens/revoke': pageForm(
    '/user/settings/authorized-apps/game-tokens/revoke',
  ),
  'POST /user/settings/collections': pageForm('/user/settings/collections'),
  'POST /user/settings/collections/add': pageForm('/user/settings/collections/add'),
  'POST /user/settings/collections/:collection_id': pageForm('/user/settings/collections/1'),
  'POST /user/settings/collections/:collection_id/delete': pageForm('/user/settings/collections/1/delete'),
  'POST /user/settings/collections/:collection_id/games': pageForm('/user/settings/collections/1/games'),
  'POST /user/settings/collections/:collection_id/games/:game_id/move': pageForm(
    '/user/settings/collections/1/games/1/move',
  ),
  'POST /user/settings/collections/:collection_id/games/:game_id/remove': pageForm(
    '/user/settings/collections/1/games/1/remove',
  ),
  'POST /user/settings/collections/:collection_id/on-profile': pageForm(
    '/user/settings/collections/1/on-profile',
  ),
  'POST /user/settings/data': pageForm('/user/settings/data'),
  'POST /user/settings/oauth-apps': pageForm('/user/settings/oauth-apps'),
  'POST /user/settings/oauth-apps/:client_id': pageForm('/user/settings/oauth-apps/x'),
  'POST /user/settings/oauth-apps/:client_id/delete': pageForm('/user/settings/oauth-apps/x/delete'),
  'POST /user/settings/webhooks': pageForm('/user/settings/webhooks'),
  'POST /user/settings/webhooks/:webhook_id/attempts/:attempt_id': pageForm(
    '/user/settings/webhooks/1/attempts/1',
  ),
  'POST /user/settings/webhooks/:webhook_id/delete': pageForm('/user/settings/webhooks/1/delete'),
  'POST /user/settings/webhooks/:webhook_id/rotate': pageForm('/user/settings/webhooks/1/rotate'),
  'POST /user/settings/webhooks/:webhook_id/test': pageForm('/user/settings/webhooks/1/test'),
  'POST /credentials/subkey': editors(
    ({ game }) => on('/credentials/subkey', { game_id: game, scope: 'profile:me' }),
    noGame,
  ),
};

const readsNoCredential = ({ access }: Route) => access === 'public' || access === 'signed in';

const routeName = ({ method, path }: Route) => `${method} ${path}`;
const routes = () => listRoutes(theApp().get(ModulesContainer));

function findRow(route: Route): Row {
  const row = TABLE[routeName(route)];
  if (!row)
    throw new Error(
      `${routeName(route)} has no row in the table of test/api/authorization.test.ts: add a line`,
    );
  return row;
}

let owner: Actor;
let admin: Actor;
let developer: Actor;
let stranger: Actor;

beforeAll(async () => {
  owner = await make.user({ developer: true });
  admin = await make.user({ developer: true });
  developer = await make.user({ developer: true });
  stranger = await make.user();
});

async function fixtures(of: Actor = owner, admins: Actor[] = [admin]): Promise<Fixtures> {
  const game = await make.game({ owner: of, admins, visibility: 'private' });
  const key = await make.downloadKey({ game, email: 'buyer@example.com' });
  const entry = await make.game({ owner: of });
  const unsold = await make.game({ owner: of, admins, visibility: 'private' });
  const collection = await make.collection({ owner: of, admins, games: [entry] });
  const hidden = await make.collection({ owner: of, admins, games: [entry], private: true });
  const upload = await make.upload({ game, external_url: 'https://example.com/' });
  // A channel is shown only with its upload.
  await make.upload({ game, channel_name: 'windows' });
  const bundle = await make.bundle({ owner: of, games: [entry] });
  for (const { id: user_id } of [of, ...admins])
    await make.purchase({ games: [entry], user_id, bundle_id: bundle.id, purchase_type: 'bundle' });
  const build = await make.build({ game, file_url: 'https://example.com/moon.zip', size: 1 });
  return {
    game: game.id,
    collection: collection.id,
    private_collection: hidden.id,
    entry: entry.id,
    unsold: unsold.id,
    key: key.id,
    upload: upload.id,
    build: build.id,
    bundle: bundle.id,
  };
}

let shared: Promise<Fixtures>;

/** Reads share their objects, and so do download sessions, which change nothing. Other writes get new objects. */
const fixturesFor = ({ method, path }: Route) =>
  method === 'GET' || path.endsWith('/download-sessions') ? (shared ??= fixtures()) : fixtures();

/** An account can have at most 1,000 collections. */
beforeEach(async () => {
  const { collection, private_collection } = await (shared ??= fixtures());
  const kept = [collection, private_collection];
  await sql('DELETE FROM collections WHERE user_id = $1 AND id <> ALL ($2)', [owner.id, kept]);
});

async function ask(
  route: Route,
  row: Row,
  credential: string | undefined,
  object: Fixtures,
): Promise<HttpResponse> {
  const { path, form } = row.call(object);
  const address = legacyPath(path, credential);
  const caller = anonymous.with(credential);
  return route.method === 'GET' ? caller.get(address) : caller.write(route.method, address, form);
}

const rejection = (credential: string, scope: Scope) =>
  failure(403, `${isJwt(credential) ? 'token' : 'api key'} does not permit \`${scope}\``);

const everyone = () => ({ owner, admin, developer, stranger });

test('has a row for every route and a route for every row', () => {
  expect(
    routes()
      .map(routeName)
      .filter((name) => !(name in TABLE)),
  ).toEqual([]);
  expect(Object.keys(TABLE).filter((name) => !routes().map(routeName).includes(name))).toEqual([]);
});

test('routes only what controllers declare', () => {
  type Layer = { route?: { path: string; methods: Record<string, boolean> } };
  const express = theApp().getHttpAdapter().getInstance() as Express;
  const known = new Set(routes().map(routeName));
  const found = (express.router as unknown as { stack: Layer[] }).stack.flatMap(({ route }) =>
    route ? Object.keys(route.methods).map((method) => `${method.toUpperCase()} ${route.path}`) : [],
  );
  expect(found.length).toBeGreaterThan(0);
  expect(found.filter((name) => !known.has(name))).toEqual([]);
});

describe('without a valid credential', () => {
  const cases: [string, () => Promise<string | undefined>, HttpResponse][] = [
    ['no credential', () => Promise.resolve(undefined), failure(401, 'authentication required')],
    ['an unknown key', () => Promise.resolve('never-a-key'), failure(401, 'invalid key')],
    [
      'a revoked key',
      async () => {
        const key = await make.key({ owner });
        await sql('UPDATE api_keys SET revoked_at = now() WHERE id = (SELECT max(id) FROM api_keys)');
        return key;
      },
      failure(401, 'invalid key'),
    ],
    ['an expired JWT', () => forge({ sub: owner.id, expires_in: -61 }), failure(401, 'token expired')],
    [
      'a JWT for another audience',
      () => forge({ sub: owner.id, aud: 'other' }),
      failure(401, 'invalid token'),
    ],
    [
      'a JWT of a revoked parent',
      async () => {
        await make.key({ owner });
        const [row] = await sql<{ id: number }>(
          'UPDATE api_keys SET revoked_at = now() WHERE id = (SELECT max(id) FROM api_keys) RETURNING id',
        );
        return forge({ sub: owner.id, api_key_id: row!.id });
      },
      failure(401, 'invalid token'),
    ],
    ['a JWT of a deleted user', () => forge({ sub: 4e6 }), failure(401, 'invalid token')],
  ];

  test.each(cases)('%s', async (_, credential, expected) => {
    const given = await credential();
    for (const route of routes()) {
      const row = findRow(route);
      const response = await ask(route, row, given, await fixturesFor(route));
      if (readsNoCredential(route))
        expect([routeName(route), response.status]).toEqual([routeName(route), row.success]);
      else if (isForOperators(route.access!))
        expect([routeName(route), response]).toEqual([
          routeName(route),
          given === undefined ? failure(401, 'authentication required') : failure(401, 'invalid token'),
        ]);
      else expect([routeName(route), response]).toEqual([routeName(route), expected]);
    }
  });
});

const scoped = new Map<string, Promise<string[]>>();

/** An API key and a JWT with only this scope. */
function credentialsWith(scope: string): Promise<string[]> {
  let credentials = scoped.get(scope);
  if (!credentials) {
    credentials = (async () => {
      // A game's JWT has access to that game only.
      const { game } = await (shared ??= fixtures());
      const jwt = forge({ sub: owner.id, scope, claims: { game_id: game } });
      return Promise.all([make.key({ owner, scopes: [scope] }), jwt]);
    })();
    scoped.set(scope, credentials);
  }
  return credentials;
}

test.each(Object.keys(TABLE))('%s: accepts only scopes that include it', async (name) => {
  const route = routes().find((one) => routeName(one) === name)!;
  const scopes = [route.access!].flat() as Scope[];
  if (!scopes.every((scope) => scope in SCOPES)) return;
  const row = findRow(route);
  const [needed] = scopes as [Scope];
  // A narrower scope, a broader one, a sibling, a part of the name, and an unknown one.
  const tried = [...Object.keys(SCOPES), needed.slice(0, -1), `${needed}:more`, 'nonsense'];
  for (const scope of tried)
    for (const credential of await credentialsWith(scope)) {
      const response = await ask(route, row, credential, await fixturesFor(route));
      const isAccepted = !(row.isForKeys && isJwt(credential));
      const expected =
        isAccepted && scopes.some((one) => covers([scope], one))
          ? row.isOfOneGame && isJwt(credential)
            ? row.missing
            : { status: row.success }
          : rejection(credential, needed);
      expect([scope, response]).toEqual([scope, expect.objectContaining(expected)]);
    }
});

test('accepts only operator tokens with the required permission', async () => {
  const tokens = theApp().get(OperatorTokensService);
  const all = [{ token: OPERATOR_TOKEN, permissions: ALL_PERMISSIONS }];
  for (const permissions of [ALL_PERMISSIONS, ...ALL_PERMISSIONS.map((permission) => [permission])])
    all.push({
      token: await tokens.create(`may-${permissions.length}-${permissions[0]}`, permissions),
      permissions,
    });
  const object = await (shared ??= fixtures());
  for (const route of routes()) {
    const row = findRow(route);
    const [kind, permission] = isForOperators(route.access!) ? route.access.split(':') : [];
    for (const { token, permissions } of kind === 'operator' ? all : all.slice(-1)) {
      const response = await ask(route, row, token, object);
      const where = `${routeName(route)} with ${permissions.join()}`;
      if (kind !== 'operator')
        expect([where, response.status]).toEqual([where, readsNoCredential(route) ? row.success : 401]);
      else if (permission === undefined || (permissions as string[]).includes(permission))
        expect([where, response.status]).toEqual([where, row.success]);
      else
        expect([where, response]).toEqual([
          where,
          failure(403, `operator token does not permit \`${permission}\``),
        ]);
    }
  }
});

test('accepts any credential on routes that allow any, and rejects JWTs on routes for API keys', async () => {
  for (const route of routes()) {
    const row = findRow(route);
    const jwt = await forge({ sub: owner.id, scope: 'profile:me' });
    if (route.access === 'any credential')
      for (const credential of [await make.key({ owner, scopes: ['collection:view'] }), jwt])
        expect((await ask(route, row, credential, await fixturesFor(route))).status).toBe(row.success);
    if (route.access === 'any API key')
      expect([routeName(route), await ask(route, row, jwt, await fixturesFor(route))]).toEqual([
        routeName(route),
        failure(403, 'an api key is required'),
      ]);
  }
});

test('accepts no API credential on pages or for changes to public objects', async () => {
  for (const route of routes().filter((one) => readsNoCredential(one)))
    for (const credential of [owner.key, await forge({ sub: owner.id, scope: 'profile game collection' })])
      expect([
        routeName(route),
        (await ask(route, findRow(route), credential, await fixturesFor(route))).status,
      ]).toEqual([routeName(route), findRow(route).success]);
});

test('objects: allows owners and admins, and returns the response for a missing object to others', async () => {
  for (const route of routes()) {
    if (readsNoCredential(route) || isForOperators(route.access!)) continue;
    const row = findRow(route);
    for (const [who, actor] of Object.entries(everyone())) {
      const allowed = !row.rejected || actor === owner || actor === admin;
      const response = await ask(route, row, actor.key, await fixturesFor(route));
      const other = row.others?.[who as keyof typeof row.others];
      const expected = other ?? (allowed ? expect.objectContaining({ status: row.success }) : row.rejected);
      expect([routeName(route), who, response]).toEqual([routeName(route), who, expected]);
    }
    if (!row.rejected) continue;
    const foreign = await ask(route, row, owner.key, await fixtures(developer, []));
    expect([routeName(route), 'foreign', foreign]).toEqual([routeName(route), 'foreign', row.rejected]);
    const missing = await ask(route, row, owner.key, MISSING);
    expect([routeName(route), 'missing', missing]).toEqual([routeName(route), 'missing', row.missing]);
  }
});
