// Compresses in the same turn of the event loop: another thread answers whenever it likes, and then a seed would not repeat a run.
// Imported before anything that compresses.
import { syncBuiltinESMExports } from "node:module";
import zlib, { type InputType } from "node:zlib";

type Done = (error: Error | null, result: Buffer) => void;

const inThisTurn =
  (work: (bytes: InputType) => Buffer) =>
  (bytes: InputType, done: Done): void =>
    done(null, work(bytes));

Object.assign(zlib, {
  zstdCompress: inThisTurn((bytes) => zlib.zstdCompressSync(bytes)),
  zstdDecompress: inThisTurn((bytes) => zlib.zstdDecompressSync(bytes)),
});
syncBuiltinESMExports();
