import { isAbsolute } from "node:path";

/** Whether a repository is a folder, and not an address such as `s3:…`. */
export const isFolder = (at: string): boolean => isAbsolute(at) || !/^[a-z][a-z0-9]*:/.test(at);
