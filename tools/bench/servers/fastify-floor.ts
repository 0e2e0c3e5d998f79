/** The floor's statements and answers behind Fastify as it comes. */
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { answers, credentialOf, type Query } from './floor';

const app = fastify({ keepAliveTimeout: 65_000 });

type Answer = (user: number, req: FastifyRequest, scopes: string[] | null) => Promise<unknown> | unknown;

const reply = (res: FastifyReply, found: unknown) => found ?? res.code(404).send({ errors: ['not found'] });

const route = (path: string, answer: Answer) =>
  app.get(path, async (req, res) => {
    const credential = await credentialOf(req.headers.authorization);
    if (!credential) return res.code(401).send({ errors: ['invalid key'] });
    return reply(res, await answer(credential.user_id, req, credential.scopes));
  });

const id = (req: FastifyRequest) => Number((req.params as { id: string }).id);
const query = (req: FastifyRequest) => req.query as Query;

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

void app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });
