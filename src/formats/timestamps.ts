// PostgreSQL writes `2013-03-03 23:02:14.5+00` in a session in UTC, as our connections are. Other zones go through Date.
const utc = (text: string) =>
  text.endsWith('+00') ? text : new Date(text).toISOString().replace('T', ' ').replace('Z', '+00');

export const modernTimestamp = (text: string) => {
  const at = utc(text);
  return `${at.slice(0, 10)}T${at.slice(11, 19)}Z`;
};

export const legacyTimestamp = (text: string) => utc(text).slice(0, 19);

/** Seconds since 1970 in PostgreSQL's format. */
export const timestampOf = (seconds: number) =>
  new Date(seconds * 1000)
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, '+00');
