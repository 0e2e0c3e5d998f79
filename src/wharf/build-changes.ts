import { Injectable } from '@nestjs/common';
import { Changes } from '../caching/changes';
import { Database } from '../database/database';
import { Measurements } from '../http/measurements';

/** Until when answers about builds stand: any change of a build, a game or a name may have changed any of them. */
@Injectable()
export class BuildChanges extends Changes {
  constructor(database: Database, measurements: Measurements) {
    const help = 'Looks whether remembered builds still stand, by what they found';
    const looks = measurements.results(
      'gamewharf_build_change_looks_total',
      help,
      'quiet',
      'changed',
      'failed',
    );
    super(database, looks, {
      table: 'build_changes',
      subject: '0::bigint',
      most: 1,
    });
  }
}
