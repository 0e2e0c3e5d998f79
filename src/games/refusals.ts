import { failure } from '../platform/http/failure';

/** The game does not exist, or the caller may not see or edit it. */
export const invalidGame = () => failure(404, 'invalid game');
