import { parentPort } from 'node:worker_threads';
import { sanitiseHtml } from './html';

parentPort!.on('message', (html: string) => parentPort!.postMessage(sanitiseHtml(html)));
