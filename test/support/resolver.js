/** A thread cannot load TypeScript by itself, so `x.worker` resolves to a file that compiles it first. */
module.exports = (request, options) => {
  const [, name] = /\/([\w-]+\.worker)$/.exec(request) ?? [];
  return name
    ? `${options.rootDir}/test/support/threads/${name}.mjs`
    : options.defaultResolver(request, options);
};
