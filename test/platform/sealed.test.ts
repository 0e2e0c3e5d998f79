import { seal, unseal } from '../../src/auth/sealed';

const text = Buffer.from('what is sealed');
const secret = 'a secret that is long enough';

test('opens under its name and its secret alone', () => {
  const sealed = seal(text, 'name', secret);
  expect(unseal(sealed, 'name', [secret])).toEqual(text);
  expect(unseal(sealed, 'other', [secret])).toBeUndefined();
  expect(unseal(sealed, 'name', [`${secret}.`])).toBeUndefined();
});

test('opens under a previous pepper, and is sealed under the current one', () => {
  let resealed: Buffer = Buffer.alloc(0);
  expect(unseal(seal(text, 'name', secret), 'name', ['current', secret])).toEqual(text);
  const keep = (sealed: Buffer) => void (resealed = sealed);
  expect(unseal(seal(text, 'name', secret), 'name', ['current', secret], keep)).toEqual(text);
  expect(unseal(resealed, 'name', ['current'])).toEqual(text);
  expect(unseal(seal(text, 'name', 'current'), 'name', ['current', secret], () => expect(1).toBe(0))).toEqual(
    text,
  );
});

test('no two are the same, and none shows what is in it', () => {
  const [one, two] = [seal(text, 'name', secret), seal(text, 'name', secret)];
  expect(one).toHaveLength(12 + 16 + text.length);
  expect(one).not.toEqual(two);
  expect(one.includes(text)).toBe(false);
});

test('with any bit changed, or cut off anywhere, it stays closed', () => {
  const sealed = seal(text, 'name', secret);
  for (let i = 0; i < sealed.length; i++) {
    const changed = Buffer.from(sealed);
    changed[i]! ^= 1;
    expect(unseal(changed, 'name', [secret])).toBeUndefined();
    expect(unseal(sealed.subarray(0, i), 'name', [secret])).toBeUndefined();
  }
});

// Sealed by another implementation of HKDF and AES-256-GCM: what is stored has to open after every upgrade.
test('opens what is stored', () => {
  const stored = Buffer.from('AAECAwQFBgcICQoLNSh2Yx41PNQ2dd7tM9bmD7HgLM0OtwTKFko0FUfF', 'base64');
  expect(unseal(stored, 'name', [secret])).toEqual(text);
});
