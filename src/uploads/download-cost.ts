import { RequestCost } from '../platform/limits/rate-limits.decorators';

/** Marks a handler of a download: clients open several connections for a file and request the URL for each. */
export const DownloadCost = () => RequestCost(0.1);
