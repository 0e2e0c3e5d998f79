import type { Upload } from '../uploads/upload.entity';

const TRAITS: Record<string, Upload['traits'][number]> = {
  windows: 'p_windows',
  win: 'p_windows',
  win32: 'p_windows',
  win64: 'p_windows',
  linux: 'p_linux',
  linux32: 'p_linux',
  linux64: 'p_linux',
  osx: 'p_osx',
  mac: 'p_osx',
  macos: 'p_osx',
  android: 'p_android',
  demo: 'demo',
};

/** The platforms in the name of a channel, such as `windows-demo`. */
export const traitsForChannel = (channel_name: string): Upload['traits'] => [
  ...new Set(channel_name.split(/[._-]/).flatMap((word) => TRAITS[word] ?? [])),
];
