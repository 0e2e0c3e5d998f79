import { createHmac } from 'node:crypto';
import {
  createParamDecorator,
  type ExecutionContext,
  Injectable,
  UnauthorizedException,
} from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import { InjectRepository } from '@nestjs/typeorm';
import { Strategy } from 'passport-http-bearer';
import { IsNull, Repository } from 'typeorm';
import { ApiKey } from '../../../../src/auth/keys/api-key.entity';

@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy) {
  constructor(@InjectRepository(ApiKey) private readonly keys: Repository<ApiKey>) {
    super();
  }

  async validate(token: string): Promise<ApiKey> {
    const key_hash = createHmac('sha256', process.env.API_KEY_PEPPER!).update(token).digest();
    // findOne with a relation would send a SELECT DISTINCT first.
    const key = await this.keys
      .createQueryBuilder('k')
      .innerJoinAndSelect('k.user', 'u')
      .where({ key_hash, revoked_at: IsNull() })
      .getOne();
    if (!key) throw new UnauthorizedException();
    return key;
  }
}

export const CurrentKey = createParamDecorator(
  (_: unknown, context: ExecutionContext) => context.switchToHttp().getRequest<{ user: ApiKey }>().user,
);
