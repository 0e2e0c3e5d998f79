import type { Client, ClientOptions } from 'openapi-fetch';
import type { paths } from './operator-api';

export type { components, operations, paths } from './operator-api';

/** A client for the routes below /operator/, typed by their description. Send an operator token as `authorization`. */
export declare function createOperatorClient(options: ClientOptions): Client<paths>;
