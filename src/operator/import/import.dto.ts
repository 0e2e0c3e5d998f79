import { ApiProperty, ApiPropertyOptional, getSchemaPath } from '@nestjs/swagger';

export class TypeCountsResponse {
  @ApiProperty({ type: 'integer', description: 'Number of new records' })
  new: number;

  @ApiProperty({ type: 'integer', description: 'Number of changed records' })
  changed: number;

  @ApiProperty({ type: 'integer', description: 'Number of unchanged records' })
  unchanged: number;

  @ApiPropertyOptional({
    type: 'integer',
    description: 'Number of deleted records; absent if the type had none to delete',
  })
  deleted?: number;
}

export class ImportResponse {
  @ApiProperty({
    type: [String],
    description: 'One line for each record type, as the command prints it',
    example: ['users 120 new, 3 changed, 1 unchanged'],
  })
  summary: string[];

  @ApiProperty({
    type: 'object',
    additionalProperties: { $ref: getSchemaPath(TypeCountsResponse) },
    description: 'The same numbers, by the plural of the record type',
  })
  types: Record<string, TypeCountsResponse>;
}
