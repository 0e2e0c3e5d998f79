export * from './actor';
export * from './app';
export * from './http';
export * from './make';
export * from './sql';
