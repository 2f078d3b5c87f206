// machines:endpoint local in a project without npm packages, as programs in Python and Go have none.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { expect, test } from "vitest";
import { serviceMain } from "../support/built.ts";
import { drive, urnOf } from "../support/driver.ts";
import { startPlugin } from "../support/plugin.ts";
import { toStruct } from "../support/properties.ts";

test("local uses a service that another project has started; with none installed or running, it says what to do", async () => {
  const folder = mkdtempSync(join(tmpdir(), "machines-local-"));
  const data = join(folder, "data");
  const service = (...args: string[]): string =>
    execFileSync(process.execPath, [serviceMain, ...args, "--data", data], {
      encoding: "utf8",
    });
  // A PATH with Node.js, but without the commands of this repository.
  mkdirSync(join(folder, "bin"));
  symlinkSync(process.execPath, join(folder, "bin/node"));
  const PATH = [join(folder, "bin"), "/usr/bin", "/bin"].join(delimiter);
  const create = async () => {
    const plugin = await startPlugin({ env: { PATH, MACHINES_SERVICE_DATA: data } });
    try {
      await plugin.client.configure(new proto.ConfigureRequest().setArgs(toStruct({ endpoint: "local" })));
      const app = drive(plugin.client, urnOf("App", "shop"));
      return await app.create(await app.checked({ name: "shop" }));
    } finally {
      await plugin.close();
    }
  };
  try {
    await expect(create()).rejects.toThrow(/no embedded service is installed or running: run `npm install/);
    service("start", "--detach", "--listen", "127.0.0.1:0");
    expect((await create()).id).toBe("shop");
    service("stop");
    await expect(create()).rejects.toThrow(/no embedded service is installed or running/);
  } finally {
    service("stop");
    rmSync(folder, { recursive: true });
  }
});
