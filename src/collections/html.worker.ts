import { parentPort } from 'node:worker_threads';
import { sanitizeHtml } from './html';

parentPort!.on('message', (html: string) => parentPort!.postMessage(sanitizeHtml(html)));
