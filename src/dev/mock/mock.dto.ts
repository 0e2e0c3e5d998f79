import { Type } from 'class-transformer';
import {
  ArrayMaxSize,
  IsArray,
  IsBoolean,
  IsIn,
  IsInt,
  IsObject,
  IsOptional,
  IsString,
  Max,
  MaxLength,
  Min,
  ValidateNested,
} from 'class-validator';
import {
  Between,
  Decimal,
  ExactlyOneOf,
  Flag,
  Id,
  NonEmptyText,
  OneOf,
  OnlyKnownFields,
} from '../../platform/input/parameters';
import { SaleRequest } from '../../purchases/sales/sale.dto';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const MAX_COUNT = 1_000_000;
const MAX_DELAY_MS = 60_000;
const MAX_BYTES = 1_000_000_000;

export class FaultMatch {
  @IsOptional()
  @IsIn(METHODS)
  method?: string;

  @IsOptional()
  @IsString()
  @MaxLength(200)
  path?: string;

  @IsOptional()
  @IsInt()
  @Min(1)
  @Max(MAX_COUNT)
  nth?: number;

  @IsOptional()
  @IsInt()
  @Min(0)
  @Max(MAX_COUNT)
  times?: number;
}

export class FaultResponse {
  @IsOptional()
  @IsInt()
  @Min(200)
  @Max(599)
  status?: number;

  @IsOptional()
  @IsArray()
  @ArrayMaxSize(20)
  @IsString({ each: true })
  @MaxLength(1000, { each: true })
  errors?: string[];

  @IsOptional()
  @IsObject()
  headers?: Record<string, string>;

  @IsOptional()
  @IsInt()
  @Min(0)
  @Max(MAX_DELAY_MS)
  delay_ms?: number;

  @IsOptional()
  @IsBoolean()
  close?: boolean;

  @IsOptional()
  @IsInt()
  @Min(0)
  @Max(MAX_BYTES)
  truncate?: number;
}

/** A misspelled field of `match` would make the fault match every request. */
@OnlyKnownFields
export class FaultRequest {
  @IsOptional()
  @IsObject()
  @ValidateNested()
  @Type(() => FaultMatch)
  match?: FaultMatch;

  @IsObject()
  @ValidateNested()
  @Type(() => FaultResponse)
  then: FaultResponse;
}

@OnlyKnownFields
export class QuirksRequest {
  @NonEmptyText('What an empty list of a response is', { required: false })
  @OneOf(['object', 'array'])
  empty_lists?: 'object' | 'array';

  @Flag('Whether downloads of paid files need `download_key_id`', { required: false })
  download_key_required?: boolean;
}

/** A misspelled optional field would leave its default. */
@OnlyKnownFields
export class MockTokenRequest {
  @Id('ID of the player')
  user_id: number;

  @Id('ID of the game')
  game_id: number;

  @NonEmptyText('Scopes, separated by spaces', { default: 'profile:me' })
  scope: string = 'profile:me';

  @Decimal('Seconds until the token expires; negative: seconds since it expired', { default: 3600 })
  @Between(-31_536_000, 31_536_000)
  expires_in: number = 3600;

  @NonEmptyText('Issuer; defaults to the service', { required: false })
  issuer?: string;
}

@OnlyKnownFields
export class MockSaleRequest extends SaleRequest {}

@OnlyKnownFields
@ExactlyOneOf('purchase_id', 'reference')
export class MockRefundRequest {
  @Id('ID of the purchase', { required: false })
  purchase_id?: number;

  @NonEmptyText("The checkout's ID for the sale", { required: false })
  reference?: string;

  @Flag('Whether the buyer keeps the download keys', { default: false })
  keep_keys: boolean = false;
}

/** A misspelled `since` would list all requests. */
@OnlyKnownFields
export class RecordedRequestsRequest {
  @Id('ID of the last request that is not needed', { default: 0 })
  since: number = 0;
}
