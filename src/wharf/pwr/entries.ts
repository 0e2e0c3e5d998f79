export interface Entry {
  path: string;
  /** Permissions, such as 0o755. */
  mode: number;
}

export interface FileEntry extends Entry {
  size: number;
}

export interface LinkEntry extends Entry {
  target: string;
}

/** The entries of a build, in the order of the upload tool. */
export interface Container {
  files: FileEntry[];
  folders: Entry[];
  links: LinkEntry[];
}
