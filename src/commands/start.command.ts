/* eslint-disable @typescript-eslint/no-require-imports -- a help text doesn't wait for the services */
import type { Commands } from './operator-command';

export const commands: Commands = {
  start: (start) => start.action(() => (require('../server') as typeof import('../server')).serve()),
};
