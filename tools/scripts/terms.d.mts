export function termsIn(text: string): Generator<[line: number, found: string, instead: string]>;
