import { ApiProperty, ApiPropertyOptional, getSchemaPath } from '@nestjs/swagger';

export class TypeCountsResponse {
  @ApiProperty({ type: 'integer', description: 'Records that were not stored before' })
  new: number;

  @ApiProperty({ type: 'integer', description: 'Stored records that are different now' })
  changed: number;

  @ApiProperty({ type: 'integer', description: 'Stored records that were the same already' })
  unchanged: number;

  @ApiPropertyOptional({
    type: 'integer',
    description: 'Stored records that are deleted; of types with a record to delete',
  })
  deleted?: number;
}

export class ImportResponse {
  @ApiProperty({
    type: [String],
    description: 'What the command prints: one line for each type of record that was sent',
    example: ['users 120 new, 3 changed, 1 unchanged'],
  })
  summary: string[];

  @ApiProperty({
    type: 'object',
    additionalProperties: { $ref: getSchemaPath(TypeCountsResponse) },
    description: 'The same as numbers, by the plural of the type',
  })
  types: Record<string, TypeCountsResponse>;
}
