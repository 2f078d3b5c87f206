// "Copy as code" in the console, as its user uses it: the program and the commands are pasted into a project, and the next
// preview shows no change.
import { expect, inject, test } from "vitest";
import { makeApp, makeMachine, makeVolume, send } from "../support/around.ts";
import { Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

interface Code {
  readonly typescript: string;
  readonly settings: string;
  readonly import: string;
}

const codeOf = (service: TestService, query: string): Promise<Code> =>
  send<Code>(service, "GET", `/console/api/code?${query}`);

/** A new stack with the program, after its commands. */
async function pasted(service: TestService, name: string, code: Code): Promise<Stack> {
  const stack = new Stack(inject("installed"), name, "pulumi-machines-plugin");
  stack.checkTypes();
  await stack.init({});
  stack.program(code.typescript);
  // The commands ask for secrets, and before they import; no one can answer here.
  const settings = code.settings.replaceAll(
    /^(pulumi config set --secret (\S+))$/gm,
    (_, command: string, key: string) => (key === "machines:token" ? `${command} ${service.token}` : `${command} any`),
  );
  const commands = `set -e\n${settings}\n${code.import} --yes --non-interactive`;
  const { code: status, output } = await stack.run(["-c", commands], { command: "sh", plain: true });
  expect([status, output]).toEqual([0, expect.stringContaining("imported")]);
  return stack;
}

test("a copied App and a copied Machine are imported, and their previews show no change", async () => {
  const service = await startService();
  await makeApp(service, "shop");
  await send(service, "POST", "/v1/apps/shop/secrets/TOKEN", { value: "hush-hush" });
  const volume = await makeVolume(service, "shop", "ams");
  const image = "registry.example.com/shop:1";
  const config = { image, env: { DB_PASSWORD: "correct-horse" }, mounts: [{ volume, path: "/data" }] };
  const id = await makeMachine(service, "shop", { name: "web", region: "ams", config });
  const whole = await pasted(service, "console-app", await codeOf(service, "type=App&id=shop&whole=true"));
  await whole.ok("preview", "--expect-no-changes");
  expect(
    Object.values(whole.state())
      .map(({ id }) => id)
      .sort(),
  ).toEqual(["shop", "shop/TOKEN", `shop/${id}`, `shop/${volume}`].sort());
  const alone = await pasted(service, "console-machine", await codeOf(service, `type=Machine&id=shop/${id}`));
  await alone.ok("preview", "--expect-no-changes");
  expect(alone.state()).toMatchObject({ web: { type: "machines:index:Machine", id: `shop/${id}` } });
  await service.close();
});
