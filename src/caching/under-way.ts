/**
 * Questions that are being asked: who asks the same meanwhile gets the same answer. An object and not a Map, which leaves
 * a trail that keeps garbage alive: docs/decisions/fast-requests.md.
 */
export class UnderWay<Answer> {
  private answers = noAnswers<Answer>();

  ask(question: string, ask: () => Promise<Answer>): Promise<Answer> {
    const { answers } = this;
    return (answers[question] ??= ask().finally(() => delete answers[question]));
  }

  /** Whoever asks from now on gets no answer to a question that was asked before. */
  forget(): void {
    this.answers = noAnswers();
  }
}

const noAnswers = <Answer>() => Object.create(null) as Record<string, Promise<Answer>>;
