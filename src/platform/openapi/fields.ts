import type { Type } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';

/** `nullable`: null is possible; `required: false`: the field may be absent. */
interface Presence {
  nullable?: true;
  required?: false;
}

/** An integer in a response. */
export const IntegerField = (description: string, example?: number, presence: Presence = {}) =>
  ApiProperty({ type: 'integer', format: 'int64', example, description, ...presence });

/** A time in a response. */
export const TimeField = (description: string, example = '2026-01-02T03:04:05Z', presence: Presence = {}) =>
  ApiProperty({ type: String, format: 'date-time', example, description, ...presence });

/** A URL in a response. */
export const UrlField = (description: string, example?: string, presence: Presence = {}) =>
  ApiProperty({ type: String, format: 'uri', example, description, ...presence });

/** A text in a response that may be null. */
export const NullableText = (description: string, example?: string | null, presence: Presence = {}) =>
  ApiProperty({ type: String, nullable: true, example, description, ...presence });

/** One of the values in a response. */
export const EnumField = (values: readonly string[], description: string, example?: string) =>
  ApiProperty({ enum: values, example, description });

/** Any number of the values in a response. */
export const EnumList = (values: readonly string[], description: string, example: string[]) =>
  ApiProperty({ enum: values, isArray: true, example, description });

/** An object in a response that may be null. */
export const NullableObject = (type: Type, description: string, presence: Presence = {}) =>
  ApiProperty({ type, nullable: true, description, ...presence });
