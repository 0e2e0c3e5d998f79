const BATCH_CHARACTERS = 256 * 1024;

/** Records as NDJSON, in batches. */
export function* toNdjson(records: Iterable<object>): Generator<Buffer> {
  let text = '';
  for (const record of records) {
    text += `${JSON.stringify(record)}\n`;
    if (text.length < BATCH_CHARACTERS) continue;
    yield Buffer.from(text);
    text = '';
  }
  if (text) yield Buffer.from(text);
}
