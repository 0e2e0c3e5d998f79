import type { Type } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';

/** `nullable`: null is possible; `required: false`: the field may be absent. */
interface Presence {
  nullable?: true;
  required?: false;
}

export const IntegerField = (description: string, example?: number, presence: Presence = {}) =>
  ApiProperty({ type: 'integer', format: 'int64', example, description, ...presence });

export const TimeField = (description: string, example = '2026-01-02T03:04:05Z', presence: Presence = {}) =>
  ApiProperty({ type: String, format: 'date-time', example, description, ...presence });

export const UrlField = (description: string, example?: string, presence: Presence = {}) =>
  ApiProperty({ type: String, format: 'uri', example, description, ...presence });

export const NullableText = (description: string, example?: string | null, presence: Presence = {}) =>
  ApiProperty({ type: String, nullable: true, example, description, ...presence });

export const EnumField = (values: readonly string[], description: string, example?: string) =>
  ApiProperty({ enum: values, example, description });

export const EnumList = (values: readonly string[], description: string, example: string[]) =>
  ApiProperty({ enum: values, isArray: true, example, description });

export const NullableObject = (type: Type, description: string, presence: Presence = {}) =>
  ApiProperty({ type, nullable: true, description, ...presence });
