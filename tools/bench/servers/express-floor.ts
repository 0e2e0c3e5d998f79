/** The floor's statements and answers behind Express as it comes. */
import express, { type Request, type Response } from 'express';
import { answers, credentialOf, type Query } from './floor';

const app = express();
app.disable('x-powered-by');
app.disable('etag');

type Answer = (user: number, req: Request, scopes: string[] | null) => Promise<unknown> | unknown;

function reply(res: Response, found: unknown): void {
  if (found) res.json(found);
  else res.status(404).json({ errors: ['not found'] });
}

const route = (path: string, answer: Answer) =>
  app.get(path, async (req, res) => {
    const credential = await credentialOf(req.headers.authorization);
    if (!credential) res.status(401).json({ errors: ['invalid key'] });
    else reply(res, await answer(credential.user_id, req, credential.scopes));
  });

const id = (req: Request) => Number(req.params.id);
const query = (req: Request) => req.query as Query;

route('/credentials/info', (_user, _req, scopes) => answers.credentialsInfo(scopes));
route('/profile', (user) => answers.profile(user));
route('/profile/games', (user) => answers.profileGames(user));
route('/profile/owned-keys', (user, req) => answers.ownedKeys(user, query(req)));
route('/profile/collections', (user, req) => answers.collections(user, query(req)));
route('/games/:id', (user, req) => answers.game(user, id(req)));
route('/games/:id/ownership', (user, req) => answers.ownership(user, id(req)));
route('/games/:id/download_keys', (user, req) => answers.downloadKey(user, id(req), query(req)));
route('/games/:id/purchases', (user, req) => answers.purchases(user, id(req), query(req)));
route('/collections/:id', (user, req) => answers.collection(user, id(req)));
route('/collections/:id/collection-games', (user, req) => answers.entries(user, id(req), query(req)));
route('/api/1/key/me', (user) => answers.profile(user));
route('/api/1/key/my-games', (user) => answers.legacyGames(user));
app.get('/wharf/latest', async (req, res) => reply(res, await answers.latest(query(req))));

const server = app.listen(Number(process.env.PORT), '127.0.0.1');
server.keepAliveTimeout = 65_000;
