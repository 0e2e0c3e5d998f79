/** The settings of the checks: the URL of the service and the credentials. */
export const base = new URL(process.env.STAGING_URL ?? 'http://127.0.0.1:3000').href.replace(/\/$/, '');
export const apiKey = process.env.STAGING_API_KEY;
export const operatorToken = process.env.STAGING_OPERATOR_TOKEN;

const PATIENCE = 10_000;

/**
 * One request as any client would send it. Waits once after a 429: the many checks may reach a limit, which isn't a
 * failure.
 */
export async function ask(method, path, { key = apiKey, form, json, headers = {}, body } = {}) {
  const request = {
    method,
    redirect: 'manual',
    signal: AbortSignal.timeout(PATIENCE),
    headers: { ...(key ? { authorization: `Bearer ${key}` } : {}), ...headers },
    body,
  };
  if (form) request.body = new URLSearchParams(form);
  if (json) {
    request.body = JSON.stringify(json);
    request.headers['content-type'] = 'application/json';
  }
  const started = performance.now();
  let response = await fetch(base + path, request);
  if (response.status === 429) {
    await new Promise((resolve) =>
      setTimeout(resolve, Number(response.headers.get('retry-after') ?? 1) * 1000),
    );
    response = await fetch(base + path, { ...request, signal: AbortSignal.timeout(PATIENCE) });
  }
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: isJson ? JSON.parse(text) : undefined,
    ms: performance.now() - started,
  };
}

export const get = (path, options) => ask('GET', path, options);
export const post = (path, form, options) => ask('POST', path, { form, ...options });
