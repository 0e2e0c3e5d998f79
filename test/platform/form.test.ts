import { Form } from '../../src/platform/input/form';

test('all texts of a form with many fields are found without reading its names for each of them', () => {
  const fields = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`field${i}`, 'x']));
  let reads = 0;
  const counted = new Proxy(fields, { ownKeys: (target) => (reads++, Reflect.ownKeys(target)) });
  expect(new Form(counted).texts()).toHaveLength(1000);
  expect(reads).toBeLessThan(5);
});

test.each([{ 'label[0]': 'x' }, { 'label[a][b]': 'x' }, { label: 'x', 'label[]': 'y' }])(
  'brackets repeat a field: %j',
  (fields) => {
    expect(() => new Form(fields).text('label')).toThrow('label must be given once');
    expect(new Form(fields).text('labels')).toBeUndefined();
  },
);

test('a line has no line breaks or other control characters', () => {
  expect(new Form({ label: ' a\r\n\tb' }).line('label')).toBe('a b');
  expect(new Form({}).line('label')).toBe('');
});

test('a title of only invisible characters is empty', () => {
  expect(new Form({ name: '\u200b\u2800 ' }).title('name')).toBe('');
  expect(new Form({ name: ' a\n\u200bb' }).title('name')).toBe('a \u200bb');
});
