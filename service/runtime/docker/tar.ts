// Tar archives, the form in which engines take files.
import { pack, type Header } from "tar-stream";

/** An entry of an archive; without contents it is empty. */
export type TarEntry = Partial<Header> & { readonly name: string; readonly contents?: Buffer };

/** The entries as one archive. */
export async function tarOf(entries: readonly TarEntry[]): Promise<Buffer> {
  const archive = pack();
  for (const { contents, ...header } of entries) archive.entry(header, contents ?? Buffer.alloc(0));
  archive.finalize();
  const chunks: Uint8Array[] = [];
  for await (const chunk of archive) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks);
}
