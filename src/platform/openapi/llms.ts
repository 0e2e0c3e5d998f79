import type { OpenAPIObject } from '@nestjs/swagger';

interface Operation {
  operationId: string;
  summary: string;
  tags: string[];
  security?: { bearer?: string[] }[];
}

/** The text of /llms.txt (https://llmstxt.org): where an assistant finds everything else. */
export function llmsText(document: OpenAPIObject, url: string): string {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item as Record<string, Operation>).map(([method, operation]) => ({
      ...operation,
      request: `${method.toUpperCase()} ${path}`,
    })),
  );
  const line = ({ operationId, summary, request, security }: (typeof operations)[number]) => {
    const scope = security?.[0]?.bearer?.[0];
    return `- [${summary}](${url}/docs#${operationId}): \`${request}\`${scope ? `, scope \`${scope}\`` : ''}`;
  };
  return (
    [
      '# Gamewharf',
      '> The server-side API of a game marketplace: players, games, ownership, purchases, collections, builds and downloads.',
      [
        `- Base URL: ${url}`,
        '- Credential: `Authorization: Bearer CREDENTIAL`, with an API key or a JWT.',
        '- Parameters: in the query string of a GET; as a form or JSON in a POST.',
        '- Errors: a status of 400 or above, and `{"errors": ["text"]}`. Responses have no error codes: use the status, then the text.',
      ].join('\n'),
      '## Documentation',
      [
        `- [OpenAPI 3.1](${url}/openapi.json): every parameter, response and error`,
        `- [API reference](${url}/docs): the same reference as a web page, with code samples`,
      ].join('\n'),
      ...(document.tags ?? []).flatMap(({ name }) => [
        `## ${name}`,
        operations
          .filter(({ tags }) => tags[0] === name)
          .map(line)
          .join('\n'),
      ]),
      '',
    ]
      .join('\n\n')
      .trimEnd() + '\n'
  );
}
