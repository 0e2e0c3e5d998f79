import { forbidden } from '../auth/errors';
import { apiError } from '../platform/http/api-error';

export const invalidCollection = () => apiError(404, 'invalid collection');
export const notInCollection = () => apiError(404, 'game is not in the collection');

/** The error for a caller who can't edit the collection: 403 if the caller can view it, else 404. */
export const cannotEdit = (visible: unknown) =>
  visible ? forbidden("you can't edit this collection") : invalidCollection();
