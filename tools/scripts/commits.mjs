// Checks the subjects of commits: conventional, imperative, at most 72 characters.
import { execFileSync } from 'node:child_process';

// Earlier commits were written before this check existed.
const FIRST_UNCHECKED = 'd36019e6';
const MAX_LENGTH = 72;
const TYPES = 'build|chore|ci|docs|feat|fix|perf|refactor|revert|style|test';
const SUBJECT = new RegExp(`^(?:${TYPES})(?:\\([a-z0-9-]+\\))?!?: (?<first>[a-z]+)\\b(?<rest>.*)$`);
// A subject that starts with one of these states a fact instead of an action.
const NOT_A_VERB =
  /^(?:a|an|the|it|its|all|no|one|only|each|every|some|this|that|these|those|what|when|where|more|less|in|on|of|at|by|for|from|with|without|new)$|(?:ed|ing)$/;
const VERBS = new Set([
  'embed',
  'feed',
  'need',
  'bring',
  'ping',
  'string',
  'shed',
  'seed',
  'proceed',
  'succeed',
  'exceed',
  'spring',
]);

/** The reasons why a subject is rejected. */
export function findProblems(subject) {
  if (/^(Merge|Revert) /.test(subject)) return [];
  const problems = [];
  if (subject.length > MAX_LENGTH) problems.push(`${subject.length} characters; use at most ${MAX_LENGTH}`);
  const match = SUBJECT.exec(subject);
  if (!match) problems.push('use "type(scope): verb object", such as "fix(sales): lock the buyer"');
  else if (NOT_A_VERB.test(match.groups.first) && !VERBS.has(match.groups.first))
    problems.push(`"${match.groups.first}" isn't a verb in the imperative`);
  if (/;|\.$/.test(subject)) problems.push('one subject per commit, without a period');
  return problems;
}

const git = (...args) => execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });

function subjects() {
  try {
    return git('log', '--no-merges', '--format=%h %s', `${FIRST_UNCHECKED}..HEAD`)
      .trim()
      .split('\n')
      .filter(Boolean);
  } catch {
    // A shallow clone or an archive lacks the history.
    return [];
  }
}

if (process.argv[1] === import.meta.filename) {
  const lines = subjects();
  let failed = 0;
  for (const line of lines)
    for (const problem of findProblems(line.slice(line.indexOf(' ') + 1))) {
      failed += 1;
      console.error(`${line}\n  ${problem}`);
    }
  console.log(`${lines.length} commit subjects, ${failed} problems`);
  if (failed) process.exitCode = 1;
}
