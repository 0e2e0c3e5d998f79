import { applyDecorators } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';
import { Between, Id } from './parameters';

export const Page = () => applyDecorators(Id('Which page, from 1', { default: 1 }), Between(1, 1_000_000));

export const PerPage = (description: string, byDefault: number) =>
  applyDecorators(Id(description, { default: byDefault }), Between(1, 500));

/** The first fields of a response that is a page of a list. */
export class PageResponse {
  @ApiProperty({ type: 'integer', description: 'Number of the page, from 1' })
  page: number;

  @ApiProperty({ type: 'integer', example: 100, description: 'Maximum number of entries per page' })
  per_page: number;
}
