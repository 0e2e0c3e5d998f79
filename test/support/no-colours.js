// Tests read what programs print. Where jest's own output is in colour, it tells its workers to print in colour too.
delete process.env.FORCE_COLOR;
process.env.NO_COLOR = '1';
