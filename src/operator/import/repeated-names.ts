/** A quotation mark before a colon: the end of a name, or rarely part of a string. */
const NAME_END = /"\s*:/g;
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/g;

/** Whether the JSON text of this record contains a name twice in one object; JSON.parse keeps only the last. */
export function hasRepeatedName(text: string, record: object): boolean {
  const names = namesIn(record);
  let ends = 0;
  for (NAME_END.lastIndex = 0; NAME_END.test(text);) ends++;
  if (ends === names) return false;
  // The quick count can be wrong inside strings, so count again with a full scanner.
  let exact = 0;
  for (const [, colon] of text.matchAll(STRING)) if (colon !== undefined) exact++;
  return exact > names;
}

/** Counts names without recursion, because a client decides how deeply its record is nested. */
function namesIn(record: object): number {
  const pending = [record];
  let names = 0;
  for (let one = pending.pop(); one; one = pending.pop()) {
    const values: unknown[] = Object.values(one);
    if (!Array.isArray(one)) names += values.length;
    for (const value of values) if (typeof value === 'object' && value !== null) pending.push(value);
  }
  return names;
}
