import { ApiProperty } from '@nestjs/swagger';
import { EmailAddress, Id } from '../../platform/input/parameters';

export class PersonByIdRequest {
  @Id('ID of the user')
  user_id: number;
}

export class PersonRequest {
  @EmailAddress('Email address of the person, with or without an account')
  email: string;
}

export class ErasedResponse {
  @ApiProperty({
    type: 'object',
    additionalProperties: { type: 'integer' },
    description: 'Number of erased or anonymized rows by table; all 0 if the person was erased before',
    example: { users: 1, user_emails: 1, purchases: 3, download_keys: 2 },
  })
  erased: Record<string, number>;
}
