import { type INestApplication, Injectable } from '@nestjs/common';
import type { OpenAPIObject } from '@nestjs/swagger';
import { type BodyWithEtag, withEtag } from '../output/response';
import { type Audience, describeApi } from './describe-api';

/** The OpenAPI documents, created at the first request and cached. */
@Injectable()
export class ApiDescription {
  private app: INestApplication | undefined;
  private readonly documents: Partial<Record<Audience, BodyWithEtag>> = {};

  /** Called when all routes are registered. */
  describes(app: INestApplication): void {
    this.app = app;
  }

  asJson(audience: Audience): BodyWithEtag {
    return (this.documents[audience] ??= withEtag(describeApi(this.app!, audience)));
  }

  document(audience: Audience): OpenAPIObject {
    return JSON.parse(this.asJson(audience).body) as OpenAPIObject;
  }
}
