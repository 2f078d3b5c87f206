// An image with real shells and full-screen programs.
import { importImage } from "../../service/runtime/docker/images.ts";
import { docker } from "./runtimes.ts";
import { archiveOfShells } from "./shellFiles.ts";

/** Imports the image, with these programs or all of them, and returns its name. */
export async function shellImage(name: string, only?: string[]): Promise<string> {
  const archive = await archiveOfShells(only);
  await importImage(docker, name, archive, ["ENV PATH=/bin", "WORKDIR /work", 'CMD ["/bin/sleep","1000000"]']);
  return name;
}
