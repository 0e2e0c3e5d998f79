/** A quotation mark before a colon: the end of a name, or seldom part of a string. */
const NAME_END = /"\s*:/g;
const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/g;

/** Whether the text of this JSON value contains a name twice in one object; JSON.parse keeps only the last. */
export function hasRepeatedName(text: string, value: unknown): boolean {
  const names = namesIn(value);
  let ends = 0;
  for (NAME_END.lastIndex = 0; NAME_END.test(text);) ends++;
  if (ends === names) return false;
  // Exactly, but slower.
  let exact = 0;
  for (const [, colon] of text.matchAll(STRING)) if (colon !== undefined) exact++;
  return exact > names;
}

function namesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const values = Object.values(value);
  let names = Array.isArray(value) ? 0 : values.length;
  for (const one of values) names += namesIn(one);
  return names;
}
