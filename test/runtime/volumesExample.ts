// examples/volumes with the real CLI, on a runtime that really stores data.
import { expect } from "vitest";
import { send } from "../support/around.ts";
import { exampleStack } from "../support/example.ts";
import { expectUnchanged } from "../support/invariants.ts";
import { counts } from "../support/stack.ts";
import type { TestService } from "../support/startService.ts";
import { image } from "./image.ts";

/** Goes through all steps of the example. The data is there after growth, in each copy, and in another region. */
export async function tryVolumes(service: TestService): Promise<void> {
  const stack = await exampleStack("volumes", service, { image });
  // First the Machine alone, so that there is data which the others can copy.
  const first = ["App::shop", "Volume::data", "Machine::store"].flatMap((one) => ["--target", `**:${one}`]);
  await stack.ok("up", "--yes", "--skip-preview", ...first);

  const resource = (name: string) => stack.state()[name]?.id.split("/").at(-1) ?? "";
  const app = Object.values(stack.state()).find(({ type }) => type.endsWith(":App"))?.id ?? "";
  const machines = `/v1/apps/${app}/machines`;
  const run = async (machine: string, command: readonly string[], stdin = "") => {
    const path = `${machines}/${machine}/exec`;
    return (await send<{ stdout: string }>(service, "POST", path, { command, stdin })).stdout;
  };
  const note = () => run(resource("store"), ["cat", "/data/note"]);
  const write = (text: string) => run(resource("store"), ["write", "/data/note", "644"], text);

  /** A file of a volume that no Machine of the example mounts. */
  async function noteIn(volume: string): Promise<string> {
    const { region } = await send<{ region: string }>(service, "GET", `/v1/apps/${app}/volumes/${volume}`);
    const config = { image, mounts: [{ volume, path: "/data" }] };
    const { id } = await send<{ id: string }>(service, "POST", machines, { region, config });
    await send(service, "GET", `${machines}/${id}/wait?state=started`);
    const text = await run(id, ["cat", "/data/note"]);
    await send(service, "DELETE", `${machines}/${id}?force=true`);
    return text;
  }

  const go = async (step: string) => {
    await stack.set({ step });
    return counts(await stack.up());
  };

  await write("kept");
  await stack.set({ sizeGb: "3" });
  expect(counts(await stack.up())).toEqual({ created: 3, updated: 1, unchanged: 3 });
  expect(await note()).toBe("kept");
  for (const copy of ["restored", "staging"]) expect(await noteIn(resource(copy))).toBe("kept");
  await expectUnchanged(stack);

  await write("newest");
  expect(await go("copied")).toEqual({ created: 1, updated: 1, unchanged: 6 });
  expect(await go("switched")).toEqual({ replaced: 1, unchanged: 7 });
  expect(await note()).toBe("newest");
  expect(await go("removed")).toEqual({ deleted: 2, unchanged: 6 });
  expect(await note()).toBe("newest");
  await expectUnchanged(stack);
  await stack.destroy();
  expect(stack.state()).toEqual({});
}
