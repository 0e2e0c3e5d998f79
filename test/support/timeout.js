// In these folders, no test takes more than a few seconds on an idle machine. A file with a slower one sets its own timeout.
if (/[\\/]test[\\/](api|dashboard|operator|platform)[\\/]/.test(expect.getState().testPath))
  jest.setTimeout(60_000);
