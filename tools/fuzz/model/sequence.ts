import { isDeepStrictEqual } from 'node:util';
import { Finding } from '../oracles';
import type { Target } from '../target';
import { type Tenant, USERS } from '../../../test/support/world/world';
import { create, deleteCollection, list, read, resubmit, update } from './collection-steps';
import { addGame, burst, entries, note, order, removeGame } from './entry-steps';
import { Play } from './play';
import type { StepName, Of, Step } from './steps';
import { reset } from './tenant-rows';

const PERFORM: { [D in StepName]: (play: Play, step: Of<D>) => Promise<void> } = {
  create,
  update,
  resubmit,
  delete: deleteCollection,
  read,
  list,
  add: addGame,
  remove: removeGame,
  note,
  order,
  entries,
  burst,
};

const WRITES: StepName[] = ['create', 'update', 'resubmit', 'delete', 'add', 'remove', 'note', 'order'];

let serial = 0;

/** Plays steps of three users against the replicas of the service and the model, and compares them. */
export async function runSequence(target: Target, tenant: Tenant, steps: Step[]): Promise<void> {
  await reset(target.sql, tenant);
  const play = new Play(target, tenant);
  for (const step of steps) {
    play.replica = step.replica ?? 0;
    const retried = step.retried && WRITES.includes(step.do);
    play.retryKey = retried ? `retry-${process.pid}-${++serial}-${Date.now()}` : undefined;
    await (PERFORM[step.do] as (play: Play, step: Step) => Promise<void>)(play, step);
  }
  await checkEverything(play);
}

/** Reads everything once more as every user, and compares rows that no response contains. */
async function checkEverything(play: Play): Promise<void> {
  play.retryKey = undefined;
  for (const index of play.model.made.keys()) {
    const collection = play.model.collections.get(play.createdId(index));
    const user = collection ? collection.user_id - play.tenant.base : 1;
    await read(play, { user, collection: index });
    play.changeReplica();
    await entries(play, { user, collection: index });
  }
  for (const user of USERS) await list(play, { user });
  const { rows } = await play.target.sql.query<{ collection_id: number; user_id: number }>(
    'SELECT collection_id, user_id FROM profile_collections WHERE user_id = ANY($1) ORDER BY 1, 2',
    [USERS.map((n) => play.tenant.user(n))],
  );
  const shown = [...play.model.collections.values()].flatMap(({ id, shown_by }) =>
    [...shown_by].map((user_id) => ({ collection_id: id, user_id })),
  );
  shown.sort((a, b) => a.collection_id - b.collection_id || a.user_id - b.user_id);
  if (!isDeepStrictEqual(rows, shown))
    throw new Finding('model', 'other collections are on profiles', JSON.stringify({ rows, shown }));
}
