// The words that docs/contributing/style.md replaces: each pattern with its replacement. Add a line to extend the list.
export const TERMS = [
  [
    /\b(whoever|whomever|whatsoever|whence|whereupon|thereupon|anew|alike|likewise|shall)\b/i,
    'a common word',
  ],
  [/\b(somebody|nobody)\b/i, 'the noun: a user, a client, an administrator, no account'],
  [/\bmend(s|ed|ing)?\b/i, '“fix”'],
  [/\bhears? of\b/i, '“is subscribed to” or “is notified of”'],
  [/\bhas left support\b/i, '“has reached end of life”'],
  [/\b(weakness|weaknesses)\b/i, '“vulnerability”'],
  [/\brefus(e|es|ed|al|als|ing)\b/i, '“reject”, “rejection” or “error”'],
  [/\bbystanders?\b/i, '“control client”'],
  [/\bstrangers?\b/i, '“anonymous client” or “another user”'],
  [/\bguess(es)?\b(?! (the|at)\b)/i, '“failed attempt” or “failed lookup”'],
  [/\btime-outs?\b/i, '“timeout”'],
  [/\bprocessor time\b/i, '“CPU time”'],
  [/\b(e-mails?|user names?|web sites?)\b/i, '“email”, “username”, “website”'],
  [
    /\b(colour|favourite|behaviour|harbour|authoris|recognis|organis|summaris|optimis(e|ing|ation)|sanitis|licence)/i,
    'US spelling',
  ],
  [
    /(?<!\bthere )\b(is|are) no [a-z]+(?! (longer|more|need|way))(?<!\b(longer|more|need|way))\b/i,
    '“isn’t a …”',
  ],
  [/\bgives? back\b/i, '“returns” or “releases”'],
  [/\b(answers?|answered|answering)\b/i, '“response”, “returns”, “responds”'],
  [/\bfor want of\b|\bfor lack of\b/i, '“because … is missing”'],
  [/\bset aside\b/i, '“excluded” or “marked unhealthy”'],
  [/\bmade anew\b|\bmakes anew\b/i, '“recreate”, “reset” or “rotate”'],
  [/\bsits?\b|\blies in\b|\bstands? (in|there|once|beside)\b/i, '“is in”'],
  [/\bheld by\b|\bholds? the (plan|behavior)/i, '“tested by” or “enforced by”'],
  [/\bhangs? on\b/i, '“depends on”'],
  [/\bturns? of the (event )?loop\b|\b(one|each|same) turn\b/i, '“tick of the event loop”'],
  [/\bdeviations?\b/i, '“known exception”'],
  [/\b(no|for|has|is|makes?) room\b/i, '“capacity”, “space” or “quota”'],
  [/\b(is|are|was|were|be) away\b/i, '“unavailable”'],
  [/\b(is|are) gone\b/i, '“deleted”, “dropped” or “closed”'],
  [/\bspelt\b/i, '“spelled”'],
  [/\bno good\b|\bgood (once|until|for)\b/i, '“invalid”, “valid”'],
  [
    /\banother (pepper|amount|audience|value|port|line width|algorithm|period|status|way|message|format|encoding)\b/i,
    '“a different …”',
  ],
  [/\b(gets?|got) (an? )?`?[2-5]\d\d\b/, '“fails with …”, “is rejected with …”, “the response is …”'],
  [/\bwith `?[45]\d\d`? with\b/, '“with 503 and …”'],
  // In a question, such as “Where is a 404 created?”, the status is the subject.
  [/(?<!\b(where|when|why|how) )\b(is|are) an? 4\d\d\b/i, '“the response is …” or “is rejected with …”'],
  [
    /(?<!\b(response|status|readiness|liveness)\b[^.;:]*)\b(is|are) (then |otherwise )?[45]\d\d\b/i,
    '“the response is …” or “fails with …”',
  ],
  [/\brespond(s|ed)? `?[2-5]\d\d\b/, '“responds with …”'],
  [
    /\bcosts? (nothing|no|an?|one|every|each|its|their|queries|more)\b/i,
    'what happens: “counts as”, “takes”, “without a query”',
  ],
  [/\ban? [a-z]+ of (its|their|your) own\b/i, '“a separate …” or “its own …”'],
  [/\bcomes? to pass\b|\bby and by\b/i, 'a common word'],
];

/** The prose of a page: without code blocks, code spans, links and HTML comments. */
export const prose = (markdown) =>
  markdown
    .replace(/^(```+)[^]*?^\1$/gm, (block) => block.replace(/[^\n]/g, ''))
    .replace(/^(?: {4}|\t).*$/gm, '')
    // Tables that quote the rules of the import, as its error messages do.
    .replace(/<!-- fields of [^]*?<!-- end -->/g, (block) => block.replace(/[^\n]/g, ''))
    .replace(/<!--[^]*?-->/g, (comment) => comment.replace(/[^\n]/g, ''))
    .replace(/`[^`\n]*`/g, '')
    .replace(/\]\([^)]*\)/g, ']');

/** [line, found, instead] of each term in a text. */
export function* termsIn(text) {
  for (const [i, line] of text.split('\n').entries())
    for (const [pattern, instead] of TERMS) {
      const found = pattern.exec(line);
      if (found) yield [i + 1, found[0], instead];
    }
}
