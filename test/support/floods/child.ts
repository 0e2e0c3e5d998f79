import { type ChildProcess, fork } from 'node:child_process';
import { extname, join } from 'node:path';

/** A file of this folder in its own process, so that its work takes no CPU time from the service. */
export class Child<Order extends object, Report> {
  private readonly process: ChildProcess;

  constructor(name: 'attack-process' | 'control-client-process') {
    this.process =
      extname(__filename) === '.ts'
        ? fork(join(__dirname, 'processes.mjs'), [name], { execArgv: [] })
        : fork(join(__dirname, `${name}.js`));
  }

  exchange(order: Order): Promise<Report> {
    const { process } = this;
    return new Promise((resolve, reject) => {
      const ended = () => reject(new Error('the process has ended'));
      process.once('exit', ended);
      process.once('message', (report) => {
        process.off('exit', ended);
        resolve(report as Report);
      });
      process.send(order, (error) => error && reject(error));
    });
  }
}
