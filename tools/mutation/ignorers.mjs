// What says something to people and decides nothing. Each is a call and the places of such arguments in it.
const WORDS = [
  // The name that PostgreSQL keeps a prepared statement under.
  { callee: /^(statement|read|longRead)$/, on: /^$/, arguments: [0], why: 'name of a statement' },
  { callee: /^(log|warn|error|debug)$/, on: /^log$/, arguments: [0], why: 'line of the log' },
  { callee: /^(counter|gauge|histogram)$/, arguments: [1], why: 'help text of a metric' },
];

function wordsOf(path) {
  const call = path.parentPath;
  if (!call?.isCallExpression() || path.listKey !== 'arguments') return undefined;
  const { callee } = call.node;
  const name = callee.type === 'MemberExpression' ? callee.property.name : callee.name;
  const on = callee.type === 'MemberExpression' ? (callee.object.property?.name ?? callee.object.name) : '';
  return WORDS.find(
    (one) => one.callee.test(name) && (!one.on || one.on.test(on)) && one.arguments.includes(path.key),
  );
}

export const strykerPlugins = [
  { kind: 'Ignore', name: 'words', value: { shouldIgnore: (path) => wordsOf(path)?.why } },
];
