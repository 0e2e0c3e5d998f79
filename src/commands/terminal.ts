import { createInterface } from 'node:readline/promises';
import { OperatorError } from '../platform/config/operator-error';

/** Prompts in the terminal until there is input. `instead`: the error without a terminal. */
export async function ask(question: string, instead: string, signal: AbortSignal): Promise<string> {
  if (!process.stdin.isTTY) throw new OperatorError(instead);
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
    if (ended.signal.aborted) throw new OperatorError(instead);
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
  if ((await ask(question, `${undone} ${without}`, signal)) !== expected) throw new OperatorError(undone);
}
