// What the engine asks of a resource type, and both bindings translate.
export { check } from "./check.ts";
export { create, type Found } from "./create.ts";
export { diff } from "./diff.ts";
export { previewCreate, previewUpdate } from "./preview.ts";
export { notFound, read } from "./read.ts";
export { remove } from "./remove.ts";
export { update } from "./update.ts";
export { InitializationFailed } from "./unfinished.ts";
export type { Caller } from "./caller.ts";
