import { type IncomingMessage, OutgoingMessage, ServerResponse } from 'node:http';

declare module 'node:http' {
  interface ServerResponse {
    /** Headers that this answer has unless it is given others of their names. */
    standing?: readonly StandingHeader[];
    /** More lines of its head, by what they tell. Their values are ours, or were looked at. */
    identity?: string;
    allowance?: string;
  }
}

export interface StandingHeader {
  /** In small letters. */
  readonly name: string;
  readonly line: string;
}

export const standingHeaders = (headers: Readonly<Record<string, string>>): StandingHeader[] =>
  Object.entries(headers).map(([name, value]) => ({
    name: name.toLowerCase(),
    line: `${name}: ${value}\r\n`,
  }));

type StoreHeader = (this: ServerResponse, firstLine: string, headers: unknown) => void;
const { _storeHeader: storeHeader } = ServerResponse.prototype as unknown as { _storeHeader: StoreHeader };

let leaving: OutgoingAnswer[] = [];

function leave(): void {
  const answers = leaving;
  leaving = [];
  for (const answer of answers) answer.leave();
}

/**
 * An answer as this service sends it: what is given to `end` before anything was written leaves with all other answers of
 * this turn of the event loop, once no more requests are there to be read. A client that is woken by each answer as it is made
 * takes the processor from whoever makes the next one. See docs/decisions/fast-requests.md.
 *
 * Headers that do not depend on the handler are text from the start. Node's own way checks the name and the value of each,
 * files them and takes them out again. The answer must have some header of its own: without any, those given to `writeHead`
 * would not be seen here.
 */
export class OutgoingAnswer<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  override standing: readonly StandingHeader[] = [];
  override identity = '';
  override allowance = '';
  /** What `end` was given, until it leaves. */
  last: unknown[] | undefined;

  override end(...last: unknown[]): this {
    if (this.last) return this;
    if (this.headersSent) return super.end(...(last as []));
    this.last = last;
    if (leaving.length === 0) setImmediate(leave);
    leaving.push(this);
    return this;
  }

  /** Now, where something must not leave before it. */
  leave(): void {
    const { last } = this;
    this.last = undefined;
    if (last) super.end(...(last as []));
  }

  override removeHeader(name: string): void {
    super.removeHeader(name);
    const removed = name.toLowerCase();
    this.standing = this.standing.filter((header) => header.name !== removed);
  }

  /** Called by Node where the head is written. */
  _storeHeader(firstLine: string, headers: unknown): void {
    let head = firstLine + this.identity + this.allowance;
    for (const { name, line } of this.standing) if (!this.hasHeader(name)) head += line;
    storeHeader.call(this, head, headers);
  }
}

// To everybody else an answer that was ended has left.
for (const name of ['headersSent', 'writableEnded'] as const) {
  const { get } = Object.getOwnPropertyDescriptor(OutgoingMessage.prototype, name)!;
  Object.defineProperty(OutgoingAnswer.prototype, name, {
    get(this: OutgoingAnswer) {
      return this.last !== undefined || (get!.call(this) as boolean);
    },
  });
}
