import { SetMetadata } from '@nestjs/common';

const SIGN_IN = 'gamewharf:limit:sign-in';
const MISSES = 'gamewharf:limit:misses';

/** An attempt to prove who one is: a few a minute from one address. */
export const LimitSignIns = () => SetMetadata(SIGN_IN, true);

/** A lookup by what a caller might be guessing: those that find nothing are counted, and too many of them end it. */
export const LimitMisses = () => SetMetadata(MISSES, true);

export const isSignIn = (handler: object) => Reflect.getMetadata(SIGN_IN, handler) === true;
export const countsMisses = (handler: object) => Reflect.getMetadata(MISSES, handler) === true;
