// PostgreSQL writes `2013-03-03 23:02:14.5+00` in a session in UTC, which our connections use. Other zones are
// converted through Date.
const utc = (text: string) =>
  text.endsWith('+00') ? text : new Date(text).toISOString().replace('T', ' ').replace('Z', '+00');

export const modernTimestamp = (text: string) => {
  const at = utc(text);
  return `${at.slice(0, 10)}T${at.slice(11, 19)}Z`;
};

export const legacyTimestamp = (text: string) => utc(text).slice(0, 19);

/** Formats seconds since 1970 like PostgreSQL. */
export const formatTimestamp = (seconds: number) =>
  new Date(seconds * 1000)
    .toISOString()
    .replace('T', ' ')
    .replace(/\.\d+Z$/, '+00');

const TIMESTAMP =
  /^(\d{4}-\d\d-\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:0\d|1[0-4]):[0-5]\d)$/;
// They have four digits in any time zone.
const YEARS = /^[12]/;

/** What is wrong with a timestamp, or undefined for one that PostgreSQL reads, such as 2013-03-03T23:02:14Z. */
export function timestampProblem(input: unknown): string | undefined {
  const [text, day] = (typeof input === 'string' && TIMESTAMP.exec(input)) || [];
  const date = new Date(day ?? '');
  // 30 February is parsed as a day in March.
  if (!text || Number.isNaN(date.getTime()) || !date.toISOString().startsWith(day!))
    return 'must be a timestamp such as 2013-03-03T23:02:14Z';
  return YEARS.test(text) ? undefined : 'must be in a year from 1000 to 2999';
}

export const isTimestamp = (text: string): boolean => timestampProblem(text) === undefined;
