import { parentPort, workerData } from 'node:worker_threads';
import { load } from './typescript.mjs';

// Pushes on a thread when it gets a message, so that the service has the event loop of its test to itself.
const { UploadTool } = load('../upload-tool.ts');
const { url, key, target, channel, patch, signature } = workerData;
const tool = new UploadTool(url, key);
const files = { patch: Buffer.from(patch), signature: Buffer.from(signature) };
parentPort.once('message', async () => parentPort.postMessage(await tool.push(target, channel, files)));
parentPort.postMessage('ready');
