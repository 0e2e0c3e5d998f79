import { apiError } from '../../platform/errors/api-error';

/** The bundle doesn't exist, or the user doesn't own it. */
export const invalidBundle = () => apiError(404, 'invalid bundle');
