import { recordTypes } from '../../src/operator/import/record-types';
import { useStore } from '../support/app';
import { sql } from '../support/sql';

useStore();

const types = recordTypes(Buffer.alloc(32)).filter(({ createdByService }) => createdByService);

test.each(types)(
  '$table, in which the service also creates rows, records which IDs were imported',
  async ({ table }) => {
    const columns = await sql(
      `SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns
     WHERE table_name = $1 AND column_name = 'imported_id'`,
      [table],
    );
    expect(columns).toEqual([
      { column_name: 'imported_id', data_type: 'boolean', is_nullable: 'NO', column_default: 'false' },
    ]);
  },
);
