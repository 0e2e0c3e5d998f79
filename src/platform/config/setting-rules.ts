import { accessSync, constants, statSync } from 'node:fs';
import { extname } from 'node:path';
import { applyDecorators } from '@nestjs/common';
import { Transform } from 'class-transformer';
import { IsBoolean, IsUrl, isURL, ValidateBy } from 'class-validator';

/** Reads a text from the environment. An unparsable text stays unchanged, so that the validator reports it. */
export const Read = (read: (text: string) => unknown) =>
  Transform(({ value }) => (typeof value === 'string' ? read(value) : (value as unknown)));
export const Satisfies = (name: string, validate: (value: unknown) => boolean, rule: string) =>
  ValidateBy({ name, validator: { validate } }, { message: `$property must ${rule}` });

const yesOrNo = (text: string) =>
  /^(true|1|yes|on)$/i.test(text) || (/^(false|0|no|off)$/i.test(text) ? false : text);
export const wholeNumber = (text: string) => (/^\d{1,15}$/.test(text) ? Number(text) : text);
export const isWithin = (value: unknown, min: number, max: number) =>
  Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
export const MAX_PORT = 65_535;
const WEB_ADDRESS = { require_tld: false, require_protocol: true, protocols: ['http', 'https'] };
const BASE_ADDRESS = {
  ...WEB_ADDRESS,
  disallow_auth: true,
  allow_query_components: false,
  allow_fragments: false,
};
export const isWebAddress = (text?: string): text is string => isURL(text ?? '', WEB_ADDRESS);
export const isBaseAddress = (text?: string): text is string => isURL(text ?? '', BASE_ADDRESS);
export const withoutSlash = (address: string) => address.replace(/\/+$/, '');

export const YesOrNo = () =>
  applyDecorators(Read(yesOrNo), IsBoolean({ message: '$property must be true or false' }));
export const WholeNumber = (min: number, max: number) =>
  applyDecorators(
    Read(wholeNumber),
    Satisfies('wholeNumber', (value) => isWithin(value, min, max), `be a whole number from ${min} to ${max}`),
  );
export const SplitAt = (separator: RegExp) =>
  Read((text) => text.split(separator).filter((part) => part !== ''));
export const IsWebAddress = () => IsUrl(WEB_ADDRESS, { message: '$property must be an http or https URL' });
/** A URL to which paths are appended. */
export const IsBaseAddress = () =>
  IsUrl(BASE_ADDRESS, {
    message: '$property must be an http or https URL without a username, query or fragment',
  });

/** The URL of a server, such as `postgres://user:password@host/name`. */
export const IsServerUrl = (...schemes: string[]) =>
  Satisfies(
    'serverUrl',
    (value) => schemes.some((scheme) => String(value).startsWith(scheme)) && isParsable(String(value)),
    `be a URL that starts with ${schemes.join(' or ')}, with special characters of the password percent-encoded`,
  );

/** Adds the default host to a URL with only a user, such as one whose socket is a parameter; a `URL` requires one. */
export const withHost = (url: string) => url.replace(/^(\w+:\/\/[^/?#]*@)(?=\/)/, '$1localhost');

// An unencoded # begins a fragment, which would cut off the rest of the password and the host.
function isParsable(text: string): boolean {
  try {
    const { username, password, hash } = new URL(text);
    decodeURIComponent(username + password);
    return hash === '';
  } catch {
    return false;
  }
}

/** The formats of images that pages can show. */
export const LOGO_EXTENSIONS = ['.svg', '.png', '.webp', '.jpg', '.jpeg'] as const;

const canRead = (file: string) => {
  try {
    accessSync(file, constants.R_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
};
export const ReadableFile = (extensions: readonly string[]) =>
  applyDecorators(
    Satisfies(
      'extension',
      (file) => extensions.includes(extname(String(file)).toLowerCase()),
      `be a file that ends in ${extensions.join(', ')}`,
    ),
    Satisfies('readableFile', (file) => canRead(String(file)), 'be a readable file'),
  );
