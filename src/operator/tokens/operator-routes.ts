import type { RequestHandler } from 'express';
import { authorizationOf } from '../../auth/credential';
import type { OperatorTokensService } from './operator-tokens.service';

/** For paths under /operator/: looks for the token before any guard. Where none is configured, the paths do not exist. */
export const operatorRoutes =
  (tokens: OperatorTokensService): RequestHandler =>
  (req, _res, next) => {
    const look = async () => {
      req.operator = await tokens.find(authorizationOf(req));
      // A path without a route, so that the answer and the rate limit are those of any unknown path.
      if (!req.operator && !(await tokens.exist())) req.url = '/';
    };
    look().then(() => next(), next);
  };
