const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';

/** Bodies that no encoder creates, with the status that they must get where parameters are read. */
export const BODIES: { type: string; text: string; repeat?: number; status?: number }[] = [
  { type: JSON_TYPE, text: 'null', status: 400 },
  { type: JSON_TYPE, text: '"x"', status: 400 },
  { type: JSON_TYPE, text: '[]', status: 400 },
  { type: JSON_TYPE, text: '[{"game_id":1}]', status: 400 },
  { type: JSON_TYPE, text: '{"game_id":1', status: 400 },
  { type: JSON_TYPE, text: '{"a":1}{"b":2}', status: 400 },
  { type: JSON_TYPE, text: '{"game_id":NaN}', status: 400 },
  { type: JSON_TYPE, text: '\ufeff{}' },
  { type: JSON_TYPE, text: '[', repeat: 5000, status: 400 },
  { type: JSON_TYPE, text: '{"a":', repeat: 5000, status: 400 },
  { type: JSON_TYPE, text: '{"__proto__":{"game_id":1},"constructor":{"prototype":{"title":1}}}' },
  { type: JSON_TYPE, text: '{"title":"\\ud800"}' },
  { type: JSON_TYPE, text: '{"title":"\\u0000"}' },
  { type: JSON_TYPE, text: ' '.repeat(64), repeat: 9000, status: 413 },
  { type: FORM, text: 'a=1&', repeat: 1001, status: 413 },
  { type: FORM, text: 'a', repeat: 600_000, status: 413 },
  { type: FORM, text: '&', repeat: 900 },
  { type: FORM, text: '=&==&=x' },
  { type: FORM, text: '__proto__[game_id]=1&constructor[prototype][title]=x' },
  { type: FORM, text: 'title=%ff' },
  { type: FORM, text: 'title=%' },
  { type: 'text/plain', text: 'title=x', status: 415 },
  {
    type: 'application/xml',
    text: '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
    status: 415,
  },
  { type: `${FORM}; charset=utf-16`, text: 'title=x', status: 415 },
  { type: `${JSON_TYPE}; charset=latin1`, text: '{}', status: 415 },
  { type: 'application/jsonp', text: '{}', status: 415 },
  { type: '__proto__', text: '{}', status: 415 },
  { type: 'multipart/form-data', text: 'x', status: 400 },
  { type: 'multipart/form-data; boundary=', text: 'x' },
  {
    type: 'multipart/form-data; boundary=b',
    text: '--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nx',
  },
  { type: 'multipart/form-data; boundary=b', text: 'no boundary at all' },
  {
    type: 'multipart/form-data; boundary=b',
    text: '--b\r\nContent-Disposition: form-data; name="title"; filename="a.exe"\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--\r\n',
    status: 400,
  },
  {
    type: 'multipart/form-data; boundary=b',
    text: `--b\r\nContent-Disposition: form-data; name="${'n'.repeat(300)}"\r\n\r\nx\r\n--b--\r\n`,
  },
  { type: 'multipart/form-data; boundary=b', text: '--b\r\n\r\n\r\n--b--\r\n' },
];
