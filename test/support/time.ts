import { setTimeout } from 'node:timers/promises';

/** Waits for time itself to pass, where that is what is tested. */
export const moment = (milliseconds: number) => setTimeout(milliseconds);
