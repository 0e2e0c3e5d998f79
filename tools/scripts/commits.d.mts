export function findProblems(subject: string): string[];
