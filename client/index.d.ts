import type { Client, ClientOptions } from 'openapi-fetch';
import type { paths } from './api';

export type { components, operations, paths } from './api';

/** A client whose calls are typed by the description of the API: `createClient({ baseUrl, headers: { authorization } })`. */
export declare function createClient(options: ClientOptions): Client<paths>;
