import { problemsOfManifestScopes } from './auth/access/scopes';
import { readSettings } from './platform/config/environment';

export const settingsOfThisProcess = () => readSettings(problemsOfManifestScopes);
