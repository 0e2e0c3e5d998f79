import { Column, Entity, PrimaryColumn } from 'typeorm';

/** How often a user's credentials have written: see docs/explanation/decisions/read-replicas.md. */
@Entity('user_writes')
export class UserWrites {
  @PrimaryColumn('bigint')
  user_id: number;

  @Column('bigint', { default: 1 })
  writes: number;
}
