import { SetMetadata } from '@nestjs/common';

/** The metadata of a handler that declares its access: see auth/access/access.ts. */
export const ACCESS_METADATA = 'gamewharf:access';

/** No credential is needed, and none is read. */
export const Public = () => SetMetadata(ACCESS_METADATA, 'public');
