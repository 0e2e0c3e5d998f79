import { applyDecorators } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';
import { Max, Min } from 'class-validator';
import { IntegerParameter } from './parameters';

export const PageParameter = () =>
  applyDecorators(IntegerParameter('Which page, from 1', { default: 1 }), Min(1), Max(1_000_000));

export const PerPageParameter = (description: string, byDefault: number) =>
  applyDecorators(IntegerParameter(description, { default: byDefault }), Min(1), Max(500));

/** The first fields of an answer that is a page of a list. */
export class PageResponse {
  @ApiProperty({ type: 'integer', description: 'The page that was asked for' })
  page: number;

  @ApiProperty({ type: 'integer', example: 100, description: 'How many a page has at most' })
  per_page: number;
}
