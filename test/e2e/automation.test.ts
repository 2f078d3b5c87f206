// A program of the Automation API that is started in another folder, as docs/bindings.md#automation-api says.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { Stack } from "../support/stack.ts";
import { send } from "../support/around.ts";
import { startService } from "../support/startService.ts";

const section = readFileSync("docs/bindings.md", "utf8").split("## Automation API\n")[1] ?? "";
const snippet = /^```ts\n(.*?)^```/ms.exec(section)?.[1] ?? "";

const program = (code: string): string => `
const pulumi = require("@pulumi/pulumi");
const machines = require("pulumi-machines");
${code}
(async () => {
  const found = await stack;
  await found.setConfig("machines:endpoint", { value: process.env.URL });
  await found.setConfig("machines:token", { value: process.env.TOKEN, secret: true });
  const { outputs } = await found.up({ color: "never" });
  console.log(JSON.stringify(outputs.app.value));
  if (process.argv[2] === "destroy") await found.destroy({ color: "never" });
})().catch((error) => {
  console.log(error.message);
  process.exitCode = 1;
});
`;

test("a program of the Automation API finds the dynamic binding in its workDir, wherever it is started", async () => {
  const service = await startService();
  try {
    const stack = new Stack(inject("installed"), "automation", "pulumi-machines");
    const elsewhere = join(stack.dir, ".pulumi-home/elsewhere");
    mkdirSync(elsewhere, { recursive: true });
    const env = { URL: service.url, TOKEN: service.token };
    const started = (name: string, code: string) => {
      const folder = join(stack.dir, name);
      mkdirSync(folder);
      writeFileSync(join(folder, "program.cjs"), program(code));
      const script = 'cd "$0" && exec node "$1" destroy';
      return stack.run(["-c", script, elsewhere, join(folder, "program.cjs")], { command: "sh", plain: true, env });
    };
    const good = await started("good", snippet);
    expect([good.code, good.stdout], good.output).toEqual([0, expect.stringMatching(/^"shop-[0-9a-f]+"\n$/)]);
    const without = await started("without", snippet.replace("workDir: __dirname, ", ""));
    expect([without.code, without.output]).toEqual([1, expect.stringContaining("Cannot find module")]);
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
  } finally {
    await service.close();
  }
});
