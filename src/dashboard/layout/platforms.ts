import { muted } from './components';
import type { Part } from './html';

/** The names of platforms, by the traits of games and files for them. */
export const PLATFORM_NAMES = {
  p_windows: 'Windows',
  p_linux: 'Linux',
  p_osx: 'macOS',
  p_android: 'Android',
} as const;

export type Platform = keyof typeof PLATFORM_NAMES;

/** The names of the platforms among the traits of a game or a file. */
export const platformNames = (traits: readonly string[]): string[] =>
  traits.flatMap((trait) => PLATFORM_NAMES[trait as Platform] ?? []);

/**
 * The trait of files for the visitor's platform. Android is checked first, because its user agents also name
 * Linux.
 */
export function visitorsPlatform(userAgent = ''): Platform | undefined {
  if (/Android/i.test(userAgent)) return 'p_android';
  if (/Windows/i.test(userAgent)) return 'p_windows';
  if (/Macintosh|Mac OS X/i.test(userAgent)) return /iPhone|iPad/i.test(userAgent) ? undefined : 'p_osx';
  return /Linux|X11/i.test(userAgent) ? 'p_linux' : undefined;
}

export const listPlatforms = (traits: readonly string[]): Part => {
  const names = platformNames(traits);
  return names.length === 0 ? muted('Any') : names.join(', ');
};
