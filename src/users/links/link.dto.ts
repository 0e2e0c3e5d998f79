import { Id, NonEmptyText, OneOf } from '../../platform/input/parameters';
import { TimeField, UrlField } from '../../platform/openapi/fields';

export class CreateLinkRequest {
  @Id('ID of the user')
  user_id: number;

  @NonEmptyText('What the link is for', { example: 'set_password' })
  @OneOf(['set_password', 'sign_in'])
  purpose: 'set_password' | 'sign_in';
}

export class RequestedLinkRequest {
  @Id('ID of the request, from the event `link.requested`')
  request_id: number;
}

export class LinkResponse {
  @UrlField(
    'The link, which works once',
    'https://api.example.com/links/sTw4nRkZbq1XoVu8sTw4nRkZbq1XoVu8sTw4nRkZbq0',
  )
  url: string;

  @TimeField('When the link expires')
  expires_at: string;
}
