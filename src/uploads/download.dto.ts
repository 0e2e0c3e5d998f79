import { applyDecorators } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';
import { Id, NonEmptyText, Pattern, Text } from '../platform/input/parameters';

class DownloadKeyChoice {
  @Id('ID of a download key of the game that belongs to the user, as in the list of owned keys', {
    required: false,
  })
  download_key_id?: number;
}

export class UploadsRequest extends DownloadKeyChoice {
  @Id('ID of the game')
  game_id: number;
}

export class UploadRequest extends DownloadKeyChoice {
  @Id('ID of the upload')
  upload_id: number;
}

export class BuildRequest extends DownloadKeyChoice {
  @Id('ID of the build')
  build_id: number;
}

export class UpgradePathRequest extends BuildRequest {
  @Id('ID of the build to update to')
  target_build_id: number;
}

const SESSION_ID = '8b1f3c3e-5a3f-4c0e-9b0c-8f4f8f3e6a51';
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const SessionId = () =>
  applyDecorators(
    Text('The download session. All requests of one session count as one download', {
      example: SESSION_ID,
      required: false,
    }),
    Pattern(UUID, '$property must be a UUID'),
  );

export class DownloadUploadRequest extends UploadRequest {
  @SessionId()
  uuid?: string;
}

export class DownloadBuildRequest extends BuildRequest {
  @NonEmptyText('Type of the file', { example: 'archive' })
  file_type: string;

  @NonEmptyText('Subtype of the file', { example: 'default' })
  sub_type: string;

  @SessionId()
  uuid?: string;
}
export class DownloadSessionResponse {
  @ApiProperty({
    format: 'uuid',
    example: SESSION_ID,
    description: 'Send it as `uuid` with each request of the download',
  })
  uuid: string;
}
