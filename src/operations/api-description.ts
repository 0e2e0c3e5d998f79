import { type INestApplication, Injectable } from '@nestjs/common';
import type { OpenAPIObject } from '@nestjs/swagger';
import { type Cacheable, cacheable } from '../http/cacheable';
import { describeApi } from '../http/openapi';
import { referencePage } from './reference-page';

/** The description of the API as it is served: made when somebody first asks, and then kept. */
@Injectable()
export class ApiDescription {
  private app: INestApplication | undefined;
  private document: OpenAPIObject | undefined;
  private json: Cacheable | undefined;
  private page: Cacheable | undefined;

  /** Routes are all known only when the application is put together. */
  describes(app: INestApplication): void {
    this.app = app;
  }

  asJson(): Cacheable {
    return (this.json ??= cacheable(JSON.stringify(this.described())));
  }

  asPage(): Cacheable {
    return (this.page ??= cacheable(referencePage(this.described())));
  }

  private described(): OpenAPIObject {
    return (this.document ??= describeApi(this.app!));
  }
}
