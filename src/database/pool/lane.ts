interface Waiting {
  since: number;
  /** Taken out when its turn comes: V8 lets a queue that has grown old keep alive whatever once stood in it. */
  turn: Turn | undefined;
}

interface Turn {
  start: (leave: () => void) => void;
  refuse: () => void;
}

/** Lets in so many at once, others in the order in which they came, and nobody who has waited longer than that. */
export class Lane {
  private underWay = 0;
  private readonly waiting: Waiting[] = [];

  constructor(
    private readonly most: number,
    private readonly patience: number,
  ) {}

  get length(): number {
    return this.waiting.length;
  }

  enter(start: Turn['start'], refuse: Turn['refuse']): void {
    if (this.underWay < this.most) this.begin({ start, refuse });
    else this.waiting.push({ since: performance.now(), turn: { start, refuse } });
  }

  private begin({ start }: Turn): void {
    this.underWay++;
    start(() => {
      this.underWay--;
      this.next();
    });
  }

  private next(): void {
    for (let next = this.waiting.shift(); next; next = this.waiting.shift()) {
      const turn = next.turn!;
      next.turn = undefined;
      if (performance.now() - next.since < this.patience) return this.begin(turn);
      turn.refuse();
    }
  }
}
