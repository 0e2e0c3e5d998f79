/** The process that started this one. Read before other modules load, because the parent may have ended by then. */
export const PARENT = process.ppid;
