import { Injectable } from '@nestjs/common';

/** Whether all that the process prints when it starts works, the demo store included. */
@Injectable()
export class Startup {
  complete = true;
}
