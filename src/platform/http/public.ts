import { SetMetadata } from '@nestjs/common';

/** The metadata of a handler that says who may call it: see auth/access.ts. */
export const ACCESS = 'gamewharf:access';

/** No credential is needed, and none is read. */
export const Public = () => SetMetadata(ACCESS, 'public');
