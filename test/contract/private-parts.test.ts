import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

// A release may change what a package doesn't document. A test of each file notices that.
const PRIVATE_PARTS = {
  'platform/database/pool/pipeline.ts': ["from 'pg-protocol'", 'pg as typeof pg & Utils'],
  'platform/output/response.ts': ['_storeHeader', 'ServerResponse.prototype as ServerResponse & HeadWriter'],
  'platform/server/express.adapter.ts': [
    'httpAllowHalfOpen',
    'router as unknown as { stack: Layer[] }',
    'trust proxy fn',
  ],
  // Nest has no public API that lists routes.
  'platform/server/routes.ts': [
    "from '@nestjs/common/constants'",
    "from '@nestjs/common/enums/route-paramtypes.enum'",
  ],
};

// Found in the same way, but documented, or not of a package.
const OTHERS = {
  // Pino documents these symbols, and its types omit the members.
  'platform/observability/request-log.ts': [
    '[symbols.streamSym]',
    'logger as Logger & Record<typeof symbols.streamSym, DestinationStream>',
  ],
  // A documented property, which a getter overrides.
  'platform/output/response.ts': ["Reflect.get(ServerResponse.prototype, 'writableEnded', this)"],
  // Documented types of drivers.
  'platform/database/data-source.ts': ["from 'typeorm/driver/postgres/PostgresDataSourceOptions'"],
  'platform/database/database.ts': ["from 'typeorm/driver/postgres/PostgresDriver'"],
  // yauzl documents that subclasses implement it.
  'wharf/zip/archive-reader.ts': ['_readStreamForRange'],
  // Replaces documented methods, by name.
  'dev/mock/mock-traffic.ts': ['res as unknown as Record<string, Writer>'],
  // The service's own values.
  'platform/input/input-values.ts': ['all as T[] & Repeated'],
  'uploads/file-uploads.service.ts': ['this.now as unknown as string'],
  'uploads/upload.row.ts': ['copy(row) as unknown as BuildRow', 'copyUpload(row) as unknown as UploadRow'],
};

// Names that only strings and options contain.
const KNOWN = /\bhttpAllowHalfOpen\b|\btrust proxy fn\b|from 'pg-protocol'/g;
const REFLECTION = /^(Reflect\.(get|set|has)|Symbol\.for|Object\.getOwnPropertySymbols)$/;
const DEEP_IMPORT = /^(?![.]|node:)(@[^/]+\/[^/]+|[^@/]+)\//;

/** The first name of `name.of.a.member`. */
function rootName(node: ts.Node): string | undefined {
  while (ts.isPropertyAccessExpression(node) || ts.isElementAccessExpression(node)) node = node.expression;
  return ts.isIdentifier(node) ? node.text : undefined;
}

function importedNames({ importClause }: ts.ImportDeclaration): string[] {
  const { name, namedBindings } = importClause ?? {};
  const others = namedBindings && ts.isNamedImports(namedBindings) ? namedBindings.elements : [namedBindings];
  return [name, ...others.map((one) => one?.name)].flatMap((one) => one?.text ?? []);
}

/** A name of a member, where it is declared or used. */
function memberName(node: ts.Node): ts.Node | undefined {
  if (ts.isBindingElement(node))
    return ts.isObjectBindingPattern(node.parent) ? (node.propertyName ?? node.name) : undefined;
  return ts.isPropertyAccessExpression(node) || ts.isClassElement(node) || ts.isTypeElement(node)
    ? node.name
    : undefined;
}

/** Whether a cast adds members to a value that may be of a package. */
function addsMembers({ expression, type }: ts.AsExpression, imported: Set<string>): boolean {
  const inner = ts.isAsExpression(expression) ? expression.expression : expression;
  if (ts.isObjectLiteralExpression(inner)) return false;
  if (inner !== expression) return expression.getText().endsWith(' as unknown');
  if (ts.isIntersectionTypeNode(type)) return type.types[0]!.getText() !== 'Error';
  // Node declares it as any.
  const root = rootName(expression);
  return root !== undefined && root !== 'workerData' && imported.has(root);
}

/** What may be a private part of a package: members that begin with _, and access that the package's types don't allow. */
function findPrivateParts(source: string): string[] {
  const file = ts.createSourceFile('file.ts', source, ts.ScriptTarget.Latest, true);
  const found = new Set((source.match(KNOWN) ?? []) as string[]);
  const imported = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) {
      const { text } = node.moduleSpecifier as ts.StringLiteral;
      if (DEEP_IMPORT.test(text)) found.add(`from '${text}'`);
      if (!text.startsWith('.')) for (const name of importedNames(node)) imported.add(name);
    }
    const member = memberName(node)?.getText();
    if (member && /^_./.test(member)) found.add(member);
    if (ts.isAsExpression(node) && addsMembers(node, imported)) found.add(node.getText());
    if (ts.isCallExpression(node) && REFLECTION.test(node.expression.getText())) found.add(node.getText());
    if (ts.isElementAccessExpression(node)) {
      const { argumentExpression: key } = node;
      const isName = ts.isStringLiteralLike(key) && /^[a-z_$][\w$]*$/i.test(key.text);
      const isSymbol = ts.isPropertyAccessExpression(key) && imported.has(rootName(key)!);
      if (isName || isSymbol) found.add(`[${key.getText()}]`);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return [...found].toSorted();
}

test('only these files use private parts of packages', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
  );
  const found = files.flatMap((file) =>
    findPrivateParts(readFileSync(join('src', file), 'utf8')).map((part) => `${file}: ${part}`),
  );
  const listed = [PRIVATE_PARTS, OTHERS].flatMap((parts) =>
    Object.entries(parts).flatMap(([file, uses]) => uses.map((use) => `${join(file)}: ${use}`)),
  );
  expect(found.toSorted()).toEqual(listed.toSorted());
});

test.each([
  ["import pg from 'pg'; (pg as { utils?: Utils }).utils", 'pg as { utils?: Utils }'],
  ["import { ServerResponse as R } from 'node:http'; R.prototype as Head", 'R.prototype as Head'],
  ['(client as unknown as Internals).queue', 'client as unknown as Internals'],
  ['(client as Client & { queue: Query[] }).queue', 'client as Client & { queue: Query[] }'],
  ['client._connected', '_connected'],
  ['const { _events: events } = server;', '_events'],
  ['class Fast extends Query { override _send() {} }', '_send'],
  ["client['queue']", "['queue']"],
  [
    "import { kState } from 'undici'; import * as s from 'pino'; logger[s.symbols.hooks]",
    '[s.symbols.hooks]',
  ],
  ["Reflect.get(client, 'queue')", "Reflect.get(client, 'queue')"],
  ["socket[Symbol.for('state')]", "Symbol.for('state')"],
  ["import { Client } from 'pg/lib/client.js';", "from 'pg/lib/client.js'"],
])('control: finds a private part in %s', (source, part) => {
  expect(findPrivateParts(source)).toEqual([part]);
});

test.each([
  "import pg from 'pg'; import { join } from 'node:path'; import { a } from '@scope/name'; pg.Client",
  'const { a: _ } = await (response.json() as Promise<Body>);',
  "headers['x-request-id']; rows[0]; names[index]",
  '(error as Error & { code?: string }).code; const stream = { pipe } as unknown as Readable;',
  'socket[Symbol.asyncDispose]()',
])('control: finds none in %s', (source) => {
  expect(findPrivateParts(source)).toEqual([]);
});
