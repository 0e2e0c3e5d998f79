import { applyDecorators } from '@nestjs/common';
import { ApiSecurity } from '@nestjs/swagger';
import { ForOperators } from '../../auth/access';
import type { OperatorRight } from './operator-rights';

/** An operator token with this permission; without one, any token. Only for paths under `/operator/`. */
export const OperatorMay = (right?: OperatorRight) =>
  applyDecorators(ForOperators(right), ApiSecurity('operator', right ? [right] : []));
