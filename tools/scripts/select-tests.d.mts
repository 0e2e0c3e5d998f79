export function selectTests(changed: string[], tests: Map<string, string>): string[];
