import type { Request } from 'express';
import type { Settings } from '../config/settings';

/** Where this service is for whoever asked: as configured, or as they reached it. */
export const ownAddress = (req: Request, settings: Pick<Settings, 'PUBLIC_URL'>): string =>
  settings.PUBLIC_URL?.replace(/\/+$/, '') ?? `http://${req.headers.host ?? 'localhost'}`;
