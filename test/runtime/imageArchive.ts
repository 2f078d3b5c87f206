// What is in the image of the tests: one program, compiled here, under the names of its commands.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tarOf } from "../../service/runtime/docker/tar.ts";
import { goEnvironment } from "../../tools/setup/goProgram.mjs";
import { commands } from "./image.ts";

/** Its files, as a tar archive. */
export async function archiveOfImage(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), "pulumi-machines-app-"));
  try {
    const env = { ...process.env, ...goEnvironment({ GOOS: "", GOARCH: "", GOFLAGS: "" }), CGO_ENABLED: "0" };
    execFileSync("go", ["build", "-trimpath", "-ldflags=-s -w", "-o", join(folder, "app"), "."], {
      cwd: "test/runtime/app",
      env,
      stdio: "pipe",
    });
    return await tarOf([
      { name: "app", mode: 0o755, contents: readFileSync(join(folder, "app")) },
      ...commands.map((name) => ({ name: `bin/${name}`, type: "symlink" as const, linkname: "/app" })),
      { name: "tmp", type: "directory", mode: 0o1777 },
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Its configuration, with the names of Docker. */
export const configOfImage = (name: string) => ({
  Entrypoint: ["/app"],
  Env: ["PATH=/bin", `RELEASE=${name.split(":")[1]}`],
  Labels: { "test.image": "app" },
});
