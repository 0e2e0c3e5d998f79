import type { Request } from 'express';
import { answerFor } from './answer';
import { Failure } from './failure';

interface Layer {
  route?: { methods: Record<string, boolean> };
  match(path: string): boolean;
}

/** Whether a route took the request. Express shows HEAD to every route of the path, and leaves the last one's name behind. */
export function isRouted(req: Request): boolean {
  const route = req.route as Layer['route'];
  return route !== undefined && (req.method !== 'HEAD' || 'get' in route.methods || 'head' in route.methods);
}

/** No route took the request: 405 where another method would have been taken, else 404. */
export function notFound(req: Request, error: unknown): Failure {
  const answer = answerFor(error);
  if (answer.status !== 404) return answer;
  const layers = (req.app.router as unknown as { stack: Layer[] }).stack;
  const methods = new Set<string>();
  for (const layer of layers) {
    if (!layer.route || !layer.match(req.path)) continue;
    for (const method of Object.keys(layer.route.methods)) methods.add(method.toUpperCase());
  }
  if (methods.size === 0) return new Failure(404, ['invalid api endpoint']);
  if (methods.has('GET')) methods.add('HEAD');
  methods.add('OPTIONS');
  return new Failure(405, ['method not allowed'], { Allow: [...methods].sort().join(', ') });
}
