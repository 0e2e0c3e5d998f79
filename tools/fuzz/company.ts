import { Bystander, LEAST_SHARE } from './bystander/bystander';
import { Watch } from './metrics';
import type { Replica } from './server';
import { BYSTANDERS } from './world';

const SETTLED_WITHIN = 5000;
const MOST_MEMORY = 700;

interface Post {
  replica: Replica;
  bystander: Bystander;
  watch: Watch;
  left: number;
}

/** A bystander and a watch at each replica, for as long as a campaign goes on. */
export class Company {
  private constructor(
    private readonly all: Post[],
    private readonly kills: boolean,
  ) {}

  /** `kills`: connections to the database are terminated meanwhile. */
  static async join(replicas: Replica[], kills: boolean): Promise<Company> {
    const postAt = async (replica: Replica, index: number): Promise<Post> => ({
      replica,
      bystander: await Bystander.start(replica.base, BYSTANDERS[index]!),
      watch: new Watch(replica.metrics),
      left: NaN,
    });
    return new Company(await Promise.all(replicas.map(postAt)), kills);
  }

  /** To be called when all other clients are gone; answers what is wrong. */
  async leave(): Promise<string[]> {
    const problems: string[] = [];
    for (const [index, one] of this.all.entries()) {
      const { replica, bystander, watch } = one;
      await bystander.stop();
      one.left = await replica.metrics.lowest(SETTLED_WITHIN).catch(() => NaN);
      await watch.stop();
      const name = `replica ${index + 1}`;
      if (!bystander.isServed({ busy: watch.isStarved, kills: this.kills }))
        problems.push(`bystander: served less than ${LEAST_SHARE * 100} % by ${name}: ${bystander}`);
      if (one.left !== 0) problems.push(`in flight: ${one.left} requests of nobody at ${name}`);
      if (watch.most.resident_mb > MOST_MEMORY) problems.push(`memory: ${name} took ${watch}`);
    }
    return problems;
  }

  toString(): string {
    return this.all
      .map(
        ({ bystander, watch, left }, index) =>
          `replica ${index + 1}: bystander: ${bystander}\n           service: ${watch}, ${left} afterwards`,
      )
      .join('\n');
  }
}
