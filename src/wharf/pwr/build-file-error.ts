/** A patch or a signature that can't be read. The message is for the user of the upload tool. */
export class BuildFileError extends Error {}
