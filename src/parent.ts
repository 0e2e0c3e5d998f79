/** Who started this process. Read before other modules load: by the end of that the parent may be gone, and another in its place. */
export const PARENT = process.ppid;
