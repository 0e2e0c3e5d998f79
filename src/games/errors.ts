import { apiError } from '../platform/errors/api-error';

/** The game does not exist, or the user can't view or edit it. */
export const invalidGame = () => apiError(404, 'invalid game');
