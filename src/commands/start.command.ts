/* eslint-disable @typescript-eslint/no-require-imports -- a help text doesn't wait for the services */
import type { Commands } from './operator-command';

export const commands: Commands = {
  start: (start) => start.action(() => (require('../serve') as typeof import('../serve')).serve()),
};
