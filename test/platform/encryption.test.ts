import { seal, unseal } from '../../src/auth/accounts/encryption';

const text = Buffer.from('the plain text');
const secret = 'a secret that is long enough';

test('decrypts only with its name and its secret', () => {
  const sealed = seal(text, 'name', secret);
  expect(unseal(sealed, 'name', [secret])).toEqual(text);
  expect(unseal(sealed, 'other', [secret])).toBeUndefined();
  expect(unseal(sealed, 'name', [`${secret}.`])).toBeUndefined();
});

test('decrypts with a previous pepper, and encrypts with the current one', () => {
  let resealed: Buffer = Buffer.alloc(0);
  expect(unseal(seal(text, 'name', secret), 'name', ['current', secret])).toEqual(text);
  const keep = (sealed: Buffer) => void (resealed = sealed);
  expect(unseal(seal(text, 'name', secret), 'name', ['current', secret], keep)).toEqual(text);
  expect(unseal(resealed, 'name', ['current'])).toEqual(text);
  expect(unseal(seal(text, 'name', 'current'), 'name', ['current', secret], () => expect(1).toBe(0))).toEqual(
    text,
  );
});

test('encrypts differently each time without revealing its content', () => {
  const [one, two] = [seal(text, 'name', secret), seal(text, 'name', secret)];
  expect(one).toHaveLength(12 + 16 + text.length);
  expect(one).not.toEqual(two);
  expect(one.includes(text)).toBe(false);
});

test('rejects data with any bit changed or any part missing', () => {
  const sealed = seal(text, 'name', secret);
  for (let i = 0; i < sealed.length; i++) {
    const changed = Buffer.from(sealed);
    changed[i]! ^= 1;
    expect(unseal(changed, 'name', [secret])).toBeUndefined();
    expect(unseal(sealed.subarray(0, i), 'name', [secret])).toBeUndefined();
  }
});

// Encrypted by another implementation of HKDF and AES-256-GCM: stored data must be readable after every upgrade.
test('decrypts stored data', () => {
  const stored = Buffer.from('AAECAwQFBgcICQoLNSh2Yx41PNQ2dd7tM9bmD7HgLM0OtwTKFko0FUfF', 'base64');
  expect(unseal(stored, 'name', [secret])).toEqual(Buffer.from('what is sealed'));
});
