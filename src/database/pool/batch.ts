interface Waiting<Question, Answer> {
  question: Question;
  resolve: (answer: Answer) => void;
  reject: (error: unknown) => void;
}

/** Questions of one kind that come in the same turn of the event loop are asked together, and answered one by one. */
export class Batch<Question, Answer> {
  private waiting: Waiting<Question, Answer>[] = [];

  /** `askAll` answers each question, in their order. */
  constructor(private readonly askAll: (questions: Question[]) => Promise<Answer[]>) {}

  ask(question: Question): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.waiting.length === 0) setImmediate(() => void this.leave());
      this.waiting.push({ question, resolve, reject });
    });
  }

  private async leave(): Promise<void> {
    const { waiting } = this;
    this.waiting = [];
    try {
      const answers = await this.askAll(waiting.map(({ question }) => question));
      waiting.forEach(({ resolve }, i) => resolve(answers[i]!));
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }
}
