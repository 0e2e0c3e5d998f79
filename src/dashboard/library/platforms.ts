const PLATFORMS: Record<string, string> = {
  p_windows: 'Windows',
  p_linux: 'Linux',
  p_osx: 'macOS',
  p_android: 'Android',
};

/** The names of the platforms among the traits of a game or a file. */
export const platformNames = (traits: readonly string[]) => traits.flatMap((trait) => PLATFORMS[trait] ?? []);

/** The trait of files for the visitor's platform. Android is also Linux. */
export function visitorsPlatform(userAgent: string | undefined = ''): string | undefined {
  if (/Android/i.test(userAgent)) return 'p_android';
  if (/Windows/i.test(userAgent)) return 'p_windows';
  if (/Macintosh|Mac OS X/i.test(userAgent)) return /iPhone|iPad/i.test(userAgent) ? undefined : 'p_osx';
  return /Linux|X11/i.test(userAgent) ? 'p_linux' : undefined;
}
