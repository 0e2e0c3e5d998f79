import { failure } from '../http/failure';

/** One answer for a game that does not exist and for one that the caller may not see or edit. */
export const invalidGame = () => failure(404, 'invalid game');
