import { type IncomingMessage, ServerResponse } from 'node:http';

declare module 'node:http' {
  interface ServerResponse {
    /** Headers that this answer has unless it is given others of their names. */
    standing?: readonly StandingHeader[];
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

/**
 * An answer whose standing headers are text from the start. Node's own way checks the name and the value of each, files
 * them and takes them out again: for eight headers that never change, a tenth of a small answer's time. The answer must
 * have some header of its own: without any, those given to `writeHead` would not be seen here.
 */
export class StandingHeadersResponse<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  override removeHeader(name: string): void {
    super.removeHeader(name);
    const removed = name.toLowerCase();
    this.standing = this.standing?.filter((header) => header.name !== removed);
  }

  /** Called by Node where the head is written. */
  _storeHeader(firstLine: string, headers: unknown): void {
    let head = firstLine;
    for (const { name, line } of this.standing ?? []) if (!this.hasHeader(name)) head += line;
    storeHeader.call(this, head, headers);
  }
}
