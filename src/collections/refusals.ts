import { forbidden } from '../auth/refusals';
import { failure } from '../http/failure';

export const invalidCollection = () => failure(404, 'invalid collection');
export const notInCollection = () => failure(404, 'game is not in the collection');

/** What a caller is told who could not edit the collection: forbidden where it is seen, else as if it were not there. */
export const cannotEdit = (seen: unknown) =>
  seen ? forbidden("you can't edit this collection") : invalidCollection();
