import { GAME_TYPES, GAME_VISIBILITIES } from '../../games/game.entity';
import { parseMoney, plainMoney } from '../../platform/formats/money';
import type { Form } from '../../platform/input/form';
import type { Problems } from '../layout/fields';
import type { OwnGame } from '../../games/editing/own-games.service';

export const FIELDS = ['title', 'slug', 'short_text', 'cover_url', 'type', 'price', 'visibility'] as const;
export type GameField = (typeof FIELDS)[number];

/** The texts of the form, as they were entered. */
export type GameDraft = Record<GameField, string> & { published: boolean };

export const NEW_GAME: GameDraft = {
  title: '',
  slug: '',
  short_text: '',
  cover_url: '',
  type: 'default',
  price: '0',
  visibility: 'private',
  published: false,
};

export const toGameDraft = (game: OwnGame): GameDraft => ({
  title: game.title,
  slug: game.slug,
  short_text: game.short_text ?? '',
  cover_url: game.cover_url ?? '',
  type: game.type,
  price: plainMoney(game.min_price, 'USD'),
  visibility: game.visibility,
  published: game.published_at !== null,
});

/** Browsers send line breaks as CR LF. */
const textIn = (form: Form, name: string) => (form.text(name) ?? '').replaceAll('\r\n', '\n').trim();

export const draftIn = (form: Form): GameDraft => ({
  title: textIn(form, 'title'),
  slug: textIn(form, 'slug'),
  short_text: textIn(form, 'short_text'),
  cover_url: textIn(form, 'cover_url'),
  type: textIn(form, 'type') || GAME_TYPES[0],
  price: textIn(form, 'price'),
  visibility: textIn(form, 'visibility') || GAME_VISIBILITIES.at(-1)!,
  published: form.isChecked('published'),
});

const LABELS: Record<string, [GameField, string]> = {
  title: ['title', 'The title'],
  slug: ['slug', 'The short name'],
  short_text: ['short_text', 'The short text'],
  cover_url: ['cover_url', 'The cover image'],
  type: ['type', 'The type'],
  min_price: ['price', 'The price'],
  visibility: ['visibility', 'The visibility'],
};

/** The parameters of the API for a draft; with a game, only those that change it. */
export function toParameters(draft: GameDraft, game?: OwnGame) {
  const { price, slug, published, ...texts } = draft;
  const min_price = parseMoney(price.replace(/^\$/, ''), 'USD');
  const problems: Problems<GameField> =
    min_price === undefined
      ? { price: 'Enter a price in US dollars such as 4.99, or 0 for a free game.' }
      : {};
  const stored = game && toGameDraft(game);
  const isSent = (name: string) => {
    const field = (name === 'min_price' ? 'price' : name) as keyof GameDraft;
    return stored === undefined || draft[field] !== stored[field];
  };
  const all = {
    ...texts,
    slug: slug || undefined,
    min_price: String(min_price),
    published: String(published),
  };
  const parameters: Record<string, unknown> = Object.fromEntries(
    Object.entries(all).filter(([name, value]) => value !== undefined && isSent(name)),
  );
  return { parameters, problems };
}

/** The errors of the API as sentences: by field, and the others. */
export function messagesByField(errors: readonly string[]): {
  problems: Problems<GameField>;
  problem?: string;
} {
  const problems: Problems<GameField> = {};
  const others: string[] = [];
  for (const error of errors) {
    const name = error.slice(0, error.indexOf(' '));
    const label = LABELS[name];
    if (label) problems[label[0]] ??= `${label[1]}${error.slice(name.length)}.`;
    else others.push(sentence(error));
  }
  return { problems, problem: others.join(' ') || undefined };
}

export const sentence = (text: string): string => `${text[0]!.toUpperCase()}${text.slice(1)}.`;
