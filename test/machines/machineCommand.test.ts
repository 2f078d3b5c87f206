import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Values } from "../../provider/core/resource.ts";
import { makeApp, makeMachine, send } from "../support/around.ts";
import { bindings, type Bound } from "../support/binding.ts";
import { drive, urnOf } from "../support/driver.ts";
import { lifecycle } from "../support/lifecycle.ts";
import { sdkFiles } from "../../tools/generate/sdk.ts";
import { packageSchema } from "../../tools/generate/schema.ts";
import { startPlugin, type Plugin } from "../support/plugin.ts";
import { Secret, secret, toStruct, type Properties } from "../support/properties.ts";
import { startService, type TestService } from "../support/startService.ts";

const image = "registry.example.com/web:1.0.0";
const config = { image, containers: [{ name: "main", image }] };
const started = async (service: TestService, app: string, settings: Values = config): Promise<string> => {
  const id = await makeMachine(service, app, { config: settings });
  await send(service, "GET", `/v1/apps/${app}/machines/${id}/wait?state=started`);
  return id;
};

const made = new WeakMap<TestService, Promise<{ app: string; machine: string; second: string }>>();
/** An App and a Machine to switch to, and a second Machine beside the first. */
const others = (service: TestService) => {
  const found =
    made.get(service) ??
    (async () => {
      const app = await makeApp(service, "command-other");
      const [machine, second] = await Promise.all([started(service, app), started(service, "command")]);
      return { app, machine, second };
    })();
  made.set(service, found);
  return found;
};
const kept = "the service keeps nothing of it";

lifecycle("MachineCommand", {
  ambiguous: /the command may have run in Machine \S+, and was not sent a second time/,
  given: async (service) => {
    const app = await makeApp(service, "command");
    return { app, machine: `${app}/${await started(service, app)}`, create: ["echo", "made"] };
  },
  changes: async (service) => {
    const { app, machine, second } = await others(service);
    return [
      { set: { create: ["echo", "again"] }, expect: "update", then: { stdout: "again\n", exitCode: 0 } },
      { set: { update: ["cat"], stdin: "read" }, expect: "update", then: { stdout: "read" } },
      { set: { stdin: "other" }, expect: "update", then: { stdout: "other" } },
      { set: { triggers: { release: "2" } }, expect: "update" },
      { set: { timeout: "30s" }, expect: "update" },
      { set: { timeout: "61s" }, expect: "refused" },
      { set: { container: "main" }, expect: "update" },
      { set: { container: undefined }, expect: "update" },
      { set: { timeout: undefined }, expect: "update" },
      { set: { stdin: undefined }, expect: "update", then: { stdout: "" } },
      { set: { triggers: undefined }, expect: "update" },
      { set: { update: undefined }, expect: "update", then: { stdout: "again\n" } },
      { set: { create: undefined, update: ["cat"] }, expect: "update" },
      { set: { create: ["echo", "again"], update: undefined }, expect: "update", then: { stdout: "again\n" } },
      { set: { delete: ["true"] }, expect: "no request" },
      { set: { update: ["true"] }, expect: "update", diffOnly: true },
      { set: { app }, expect: "replace", diffOnly: true },
      { set: { machine: second }, expect: "replace" },
      { set: { app, machine }, expect: "replace" },
    ];
  },
  steady: { create: kept, update: kept, triggers: kept, stdin: kept, timeout: kept, container: kept },
  importRefused: /a MachineCommand cannot be imported or looked up: .*nothing to read/,
  survives: "changed",
  sent: ["create", "stdin", "container"],
});

describe.each(bindings)("MachineCommand, $name binding", ({ start }) => {
  let service: TestService;
  let commands: Bound;
  let close: () => Promise<void>;
  let machine = "";
  beforeAll(async () => {
    service = await startService({ keepBodies: true });
    ({ bound: commands, close } = await start("MachineCommand", service));
    await makeApp(service, "app");
    machine = await started(service, "app");
  });
  afterAll(async () => {
    await close();
    await service.close();
  });
  afterEach(() => service.service.faults.clear());

  const checked = async (news: Values, olds: Values = {}) => {
    const { inputs, failures } = await commands.check(olds, { app: "app", machine, ...news });
    expect(failures).toEqual([]);
    return inputs;
  };
  const make = async (news: Values) => {
    const inputs = await checked(news);
    return { inputs, ...(await commands.create(inputs)) };
  };
  /** The number of commands that ran meanwhile. */
  const runs = async (work: () => Promise<unknown>): Promise<number> => {
    const before = service.requests.length;
    await work();
    return service.requests.slice(before).filter(({ operation }) => operation === "machines.exec").length;
  };

  test("each has its own id, and its outputs have what the command wrote", async () => {
    const one = await make({ create: ["sh", "-c", "echo hello"] });
    const two = await make({ create: ["cat"], stdin: "line" });
    expect(one.id).toMatch(new RegExp(`^app/${machine}/[0-9a-f]{16}$`));
    expect(two.id).not.toBe(one.id);
    expect(one.state).toMatchObject({ stdout: "hello\n", stderr: "", exitCode: 0, machineId: machine });
    expect(two.state).toMatchObject({ stdout: "line", exitCode: 0 });
  });

  test("each run has the time that it is given", async () => {
    const times = (since: number): unknown[] =>
      service.bodies
        .slice(since)
        .filter(({ path }) => path.endsWith("/exec"))
        .map(({ body }) => (body as { timeout?: number }).timeout);
    const before = service.bodies.length;
    const { id, inputs, state } = await make({ create: ["true"], timeout: "20s" });
    const next = await checked({ create: ["true"], timeout: "30s" }, inputs);
    await commands.update(id, state, next);
    expect(times(before)).toEqual([20, 30]);
  });

  test("without a command nothing is run, but the Machine must exist", async () => {
    let made: Awaited<ReturnType<typeof make>> | undefined;
    expect(await runs(async () => (made = await make({ triggers: { release: "1" }, delete: ["true"] })))).toBe(0);
    if (!made) return;
    const { id, inputs, state } = made;
    expect(state).not.toHaveProperty("stdout");
    const next = await checked({ triggers: { release: "2" } }, inputs);
    expect(await commands.diff(id, state, next)).toBe("update");
    expect(await runs(() => commands.update(id, state, next))).toBe(0);
    await expect(make({ machine: "0123456789abcd" })).rejects.toThrow(/404/);
  });

  test("a change runs the update command, or else the create command; changing delete runs none", async () => {
    const { id, inputs, state } = await make({ create: ["echo", "created"], triggers: { release: "1" } });
    const again = await checked({ create: ["echo", "created"], triggers: { release: "2" } }, inputs);
    expect(await commands.update(id, state, again)).toMatchObject({ stdout: "created\n", triggers: { release: "2" } });
    const update = { create: ["echo", "created"], update: ["echo", "updated"], triggers: { release: "3" } };
    const next = await checked(update, again);
    const after = await commands.update(id, state, next);
    expect(after).toMatchObject({ stdout: "updated\n", commandId: state["commandId"] });
    const later = await checked({ ...update, delete: ["false"] }, next);
    expect(await runs(() => commands.update(id, after, later))).toBe(0);
  });

  test("deletion runs its command if the Machine exists, and fails if the command fails", async () => {
    const { id, inputs, state } = await make({ create: ["true"], delete: ["false"] });
    await expect(commands.delete(id, state)).rejects.toThrow(/ended with exit code 1 and wrote nothing/);
    const next = await checked({ create: ["true"], delete: ["true"] }, inputs);
    const after = await commands.update(id, state, next);
    expect(await runs(() => commands.delete(id, after))).toBe(1);
    const { id: other, state: without } = await make({ create: ["true"] });
    expect(await runs(() => commands.delete(other, without))).toBe(0);
  });

  test("if its command prevents a deletion, the error says how to delete it nevertheless", async () => {
    const own = await started(service, "app");
    const wayOut = /take `delete` out of the program, run up, and delete again/;
    const deletionError = (state: Values) => commands.delete(id, state).catch((error: unknown) => String(error));
    const { id, inputs, state } = await make({ machine: own, create: ["true"], delete: ["false"] });
    const failed = await deletionError(state);
    expect(failed).toMatch(/ended with exit code 1.*\nTo delete it, repair what it failed on and delete again; or/);
    expect(failed).toMatch(wayOut);
    await send(service, "POST", `/v1/apps/app/machines/${own}/stop`, {});
    await send(service, "GET", `/v1/apps/app/machines/${own}/wait?state=stopped&timeout=10`);
    const stopped = await deletionError(state);
    expect(stopped).toMatch(new RegExp(`does not run.*\nTo delete it, start Machine app/${own} and delete again; or`));
    expect(stopped).toMatch(wayOut);
    const { delete: _, ...without } = inputs;
    const next = await checked(without, inputs);
    const after = await commands.update(id, state, next);
    expect(await runs(() => commands.delete(id, after))).toBe(0);
  });

  test("an exit code other than 0 fails with the end of the output, and nothing is created", async () => {
    const lines = Array.from({ length: 30 }, (_, i) => `line ${i + 1}`).join("\n");
    const inputs = await checked({ create: ["cat", "/no/such/file"] });
    const error: unknown = await commands.create(inputs).catch((failed: unknown) => failed);
    // Pulumi's dynamic resource host does not pass on whether the command is secret, so it is never quoted.
    expect(String(error)).toMatch(
      /command in Machine app\/\w+ ended with exit code 1:\ncat: (\/no\/such\/file|\[secret\]): No such file/,
    );
    expect(error).not.toHaveProperty("properties");
    service.fail({
      operation: "machines.exec",
      when: "after",
      rewrite: (body) => ({ ...(body as Values), stdout: `${lines}\n`, exit_code: 7 }),
    });
    const message = String(
      await make({ create: ["true"], stdin: "not this\nline 30" }).catch((failed: unknown) => failed),
    );
    expect(message).toContain("exit code 7:\nline 11\n");
    expect(message).toMatch(/line 29\n\[stdin\] \(https:/);
  });

  test.each([503, "reset"] as const)(
    "a lost answer (%s) fails and says that the command may have run, at most once",
    async (status) => {
      service.fail({ operation: "machines.exec", when: "after", status });
      const ran = await runs(async () => {
        await expect(make({ create: ["true"] })).rejects.toThrow(
          /the command may have run in Machine .*not sent a second time/,
        );
      });
      // A reset request is in no log; a repeated one would have been answered.
      expect(ran).toBe(status === 503 ? 1 : 0);
      const { id, inputs, state } = await make({ create: ["true"] });
      service.fail({ operation: "machines.exec", when: "after", status });
      const next = await checked({ create: ["true"], triggers: { release: "1" } }, inputs);
      const error: unknown = await commands.update(id, state, next).catch((failed: unknown) => failed);
      expect(String(error)).toMatch(/may have run/);
      // An ordinary failure: the state keeps the old inputs, and the next up runs it again.
      expect(error).not.toHaveProperty("properties");
    },
  );

  test("the error for a timeout says that the command may have completed", async () => {
    const error = make({ create: ["sleep", "20"], timeout: "1s" });
    await expect(error).rejects.toThrow(/may have run .*408.*did not end within 1 s/);
  });

  test("a stopped Machine and a missing container are reported as such", async () => {
    const stopped = await makeMachine(service, "app", { config, skip_launch: true });
    await send(service, "GET", `/v1/apps/app/machines/${stopped}/wait?state=stopped`);
    await expect(make({ machine: stopped, create: ["true"] })).rejects.toThrow(/does not run, so that nothing was run/);
    await expect(make({ create: ["true"], container: "other" })).rejects.toThrow(/400: invalid container/);
  });

  test("it is gone with its Machine, and then its deletion runs nothing", async () => {
    const own = await started(service, "app");
    const { id, state } = await make({ machine: own, create: ["true"], delete: ["true"] });
    await send(service, "DELETE", `/v1/apps/app/machines/${own}?force=true`);
    await send(service, "GET", `/v1/apps/app/machines/${own}/wait?state=destroyed`);
    expect(await commands.read(id, state)).toBeUndefined();
    expect(await runs(() => commands.delete(id, state))).toBe(0);
  });

  test("if the Machine is deleted during the delete command, the deletion succeeds", async () => {
    const { id, state } = await make({ create: ["true"], delete: ["true"] });
    service.fail({ operation: "machines.exec", when: "before", status: 404 });
    await commands.delete(id, state);
    service.fail({ operation: "machines.exec", when: "before", status: 403 });
    await expect(commands.delete(id, state)).rejects.toThrow(/^(?!.*take `delete` out).*machines.exec answered 403/s);
  });
});

describe("secrets of a MachineCommand as a dynamic resource", () => {
  test("its output is always secret; the schema, used by the plugin, does not say so", () => {
    const schema = packageSchema("1.0.0");
    expect(sdkFiles(schema)["machineCommand.ts"]).toContain('optionsFor("MachineCommand", opts, ["stdout","stderr"])');
    const { properties = {} } = schema.resources["machines:index:MachineCommand"] ?? {};
    for (const name of ["stdout", "stderr"]) {
      expect(properties[name]).toMatchObject({
        description: expect.stringMatching(/dynamic resource.* always/) as unknown,
      });
      expect(properties[name]).not.toHaveProperty("secret");
    }
  });

  test("an output that repeats one input is not secret by itself", () => {
    expect(sdkFiles(packageSchema("1.0.0"))["machine.ts"]).not.toMatch(/optionsFor\("Machine", opts, .*imageRef/);
  });
});

describe("secrets of a MachineCommand in the plugin", () => {
  let service: TestService;
  let plugin: Plugin;
  let machine = "";
  beforeAll(async () => {
    service = await startService();
    plugin = await startPlugin();
    const args = toStruct({ endpoint: service.url, token: service.token });
    await plugin.client.configure(new proto.ConfigureRequest().setArgs(args));
    await makeApp(service, "app");
    machine = await started(service, "app");
  });
  afterAll(async () => {
    await plugin.close();
    await service.close();
  });

  test.each<[string, Properties]>([
    ["stdin", { create: ["cat"], stdin: secret("s3cr3t-canary") }],
    ["an argument", { create: ["echo", secret("s3cr3t-canary")] }],
    ["a whole command", { create: secret(["echo", "s3cr3t-canary"]) }],
    ["a trigger", { create: ["echo", "x"], triggers: { by: secret("s3cr3t-canary") } }],
  ])("the output is secret when %s is, and stays so after a refresh", async (_what, news) => {
    const resource = drive(plugin.client, urnOf("MachineCommand", "sealed"));
    const inputs = await resource.checked({ app: "app", machine, ...news });
    const { id, state } = await resource.create(inputs);
    for (const name of ["stdout", "stderr"]) expect(state[name]).toBeInstanceOf(Secret);
    expect(state["exitCode"]).toBe(0);
    const found = await resource.read(id, { inputs, state });
    expect(found?.state["stdout"]).toBeInstanceOf(Secret);
  });

  test("without a secret nothing is secret, and no failure quotes one", async () => {
    const resource = drive(plugin.client, urnOf("MachineCommand", "open"));
    const open = await resource.create(await resource.checked({ app: "app", machine, create: ["echo", "x"] }));
    expect(open.state["stdout"]).toBe("x\n");
    for (const news of [
      { create: ["s3cr3t-canary"].map((word) => secret(word)) },
      { create: ["cat", secret("/s3cr3t-canary")] },
    ]) {
      const inputs = await resource.checked({ app: "app", machine, ...news });
      const error = String(await resource.create(inputs).catch((failed: unknown) => failed));
      expect(error).toMatch(/exit code/);
      expect(error).not.toContain("s3cr3t-canary");
    }
  });
});
