import vm from 'node:vm';

const compiled = new Map();
const { compileFunction } = vm;

/**
 * Jest compiles every module anew for every file of tests and every mutant, which is half of the time of a run. Which mutant
 * is active is asked when the code runs: its text stays the same.
 */
vm.compileFunction = (code, parameters, options) => {
  if (!options?.parsingContext) return compileFunction(code, parameters, options);
  let known = compiled.get(options.filename);
  if (known?.code !== code) {
    const script = new vm.Script(`(function (${parameters.join(', ')}) {${code}\n})`, {
      filename: options.filename,
    });
    known = { code, script };
    compiled.set(options.filename, known);
  }
  return known.script.runInContext(options.parsingContext);
};
