import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { OperatorError } from '../platform/errors/operator-error';

/** Prompts in the terminal until there is input. `instead`: the error without a terminal. */
export async function prompt(question: string, instead: OperatorError, signal: AbortSignal): Promise<string> {
  if (!process.stdin.isTTY) throw instead;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const ended = new AbortController();
  terminal.once('close', () => ended.abort());
  try {
    for (;;) {
      const answer = await terminal.question(`${question} `, {
        signal: AbortSignal.any([signal, ended.signal]),
      });
      if (answer.trim() !== '') return answer.trim();
    }
  } catch (error) {
    if (ended.signal.aborted) throw instead;
    throw error;
  } finally {
    terminal.close();
  }
}

/** Continues only if the expected word is typed. `undone` begins an error, such as "Nothing was deleted." */
export async function confirm(
  { question, expected, undone, without }: Record<'question' | 'expected' | 'undone' | 'without', string>,
  signal: AbortSignal,
): Promise<void> {
  if ((await prompt(question, new OperatorError(`${undone} ${without}`), signal)) !== expected)
    throw new OperatorError(undone);
}

/**
 * Prompts twice without echo in a terminal, and reads the first line of a pipe. An argument would be visible in the
 * list of processes.
 */
export async function readPassword(): Promise<string> {
  if (!process.stdin.isTTY) return firstLine();
  const password = await askHidden('New password: ');
  if ((await askHidden('Repeat the password: ')) !== password)
    throw new OperatorError("The passwords don't match.");
  return password;
}

async function firstLine(): Promise<string> {
  const lines = createInterface({ input: process.stdin });
  for await (const line of lines) return line;
  throw new OperatorError('Standard input contains no password.');
}

/** Node's line editor without its output: arrow keys edit the line, but nothing shows what is typed. */
async function askHidden(question: string): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true, historySize: 0 });
  try {
    return await new Promise<string>((resolve, reject) => {
      terminal.once('line', resolve);
      // Ctrl-C closes the prompt, and so does Ctrl-D on an empty line.
      terminal.once('close', () => reject(new OperatorError('Nothing was changed.')));
      // This isn't set earlier, because the terminal itself echoes what is typed before.
      process.stderr.write(question);
    });
  } finally {
    terminal.close();
    process.stderr.write('\n');
  }
}
