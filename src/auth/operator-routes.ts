import type { RequestHandler } from 'express';
import { OPERATOR_PATH } from './operator-rights';
import type { OperatorTokensService } from './operator-tokens.service';
import { authorizationOf } from './presented';

/** Looks for the operator's token before any guard. Where no token is configured, paths under /operator/ do not exist. */
export const operatorRoutes =
  (tokens: OperatorTokensService): RequestHandler =>
  (req, _res, next) => {
    if (!req.path.startsWith(OPERATOR_PATH)) return next();
    const look = async () => {
      req.operator = await tokens.find(authorizationOf(req));
      // A path without a route, so that the answer and the rate limit are those of any unknown path.
      if (!req.operator && !(await tokens.exist())) req.url = '/operator';
    };
    look().then(() => next(), next);
  };
