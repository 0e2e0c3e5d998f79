import DataLoader from 'dataloader';

/** Loads the keys that are requested in one tick of the event loop with one statement, and caches nothing. */
export const createLoader = <Key, Value>(load: (keys: readonly Key[]) => Promise<Value[]>) =>
  new DataLoader(load, { cache: false, batchScheduleFn: setImmediate });
