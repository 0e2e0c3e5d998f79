import { parentPort, workerData } from 'node:worker_threads';
import { load } from './typescript.mjs';

// Pushes on a thread, so that the service has the event loop of its test to itself.
const { UploadTool } = load('../upload-tool.ts');
const { url, key, target, channel, patch, signature } = workerData;
const tool = new UploadTool(url, key);
const build = await tool.push(target, channel, {
  patch: Buffer.from(patch),
  signature: Buffer.from(signature),
});
parentPort.postMessage(build);
