import { Injectable } from '@nestjs/common';

export interface Quirks {
  /** `object`: an empty list is `{}`, as on the live site, which encodes empty Lua tables that way. */
  empty_lists: 'object' | 'array';
  /** Downloads of paid files need `download_key_id`, even for their buyers. */
  download_key_required: boolean;
}

export const LIVE: Quirks = { empty_lists: 'object', download_key_required: true };
export const NO_QUIRKS: Quirks = { empty_lists: 'array', download_key_required: false };

/** The differences of the live site from its documentation. */
@Injectable()
export class LiveQuirks {
  private current = NO_QUIRKS;
  private initial = NO_QUIRKS;

  /** The quirks that a reset returns to. */
  start(quirks: Quirks): void {
    this.initial = quirks;
    this.reset();
  }

  reset(): void {
    this.current = this.initial;
  }

  get(): Quirks {
    return this.current;
  }

  change(changed: Partial<Quirks>): Quirks {
    const defined = Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== undefined));
    return (this.current = { ...this.current, ...defined });
  }
}

/** The JSON of a response whose empty top-level lists are objects. Its length stays the same. */
export function emptyListsAsObjects(text: string): string {
  if (!text.startsWith('{') || !text.includes(':[]')) return text;
  let body: Record<string, unknown>;
  try {
    body = JSON.parse(text) as Record<string, unknown>;
  } catch {
    // A slice of a longer list isn't valid JSON.
    return text;
  }
  for (const [name, value] of Object.entries(body))
    if (Array.isArray(value) && value.length === 0) body[name] = {};
  return JSON.stringify(body);
}
