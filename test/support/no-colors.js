// Tests read the output of programs. If jest's own output is in color, it tells its workers to print in color too.
delete process.env.FORCE_COLOR;
process.env.NO_COLOR = '1';
