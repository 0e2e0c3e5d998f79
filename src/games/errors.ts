import { apiError } from '../platform/http/api-error';

/** The game does not exist, or the caller may not see or edit it. */
export const invalidGame = () => apiError(404, 'invalid game');
