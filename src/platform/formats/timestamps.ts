// PostgreSQL writes `2013-03-03 23:02:14.5+00` in a session in UTC, which our connections use. Other zones are
// converted through Date.
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

// Years from 1000 to 2999, which have four digits in any time zone.
const TIMESTAMP = /^([12]\d{3})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:Z|[+-](\d\d):(\d\d))$/;
const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function isDate(year: number, month: number, day: number) {
  if (month < 1 || month > 12 || day < 1) return false;
  const leap = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return day <= DAYS[month - 1]! + (leap ? 1 : 0);
}

/** Whether a text is a timestamp that PostgreSQL reads, such as 2013-03-03T23:02:14Z. */
export function isTimestamp(text: string): boolean {
  const parts = TIMESTAMP.exec(text);
  return (
    parts !== null &&
    isDate(+parts[1]!, +parts[2]!, +parts[3]!) &&
    +parts[4]! <= 23 &&
    +parts[5]! <= 59 &&
    +parts[6]! <= 59 &&
    (parts[7] === undefined || (+parts[7] <= 14 && +parts[8]! <= 59))
  );
}
