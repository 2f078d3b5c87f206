// Two stacks on one App, and two concurrent runs of the CLI (F37): Machines of both, one Machine that both manage, and lost
// answers.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { makeApp, send } from "../support/around.ts";
import { expectEmptied } from "../support/invariants.ts";
import { hang } from "../support/patience.mts";
import { bindings, counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const app = "common-shop";

/** The program of a stack: the Machine that both manage, and `own` for the stack itself. */
const program = (greeting: string, own: readonly string[] = []): string => `
import * as machines from "pulumi-machines";
const make = (name: string, env: Record<string, string>) =>
  new machines.Machine(name, { app: "${app}", region: "ams", config: { image: "registry.example.com/a:1", env } });
make("web", { GREETING: "${greeting}" });
for (const name of ${JSON.stringify(own)}) make(name, {});
`;

interface Live {
  readonly id: string;
  readonly state: string;
  readonly config: { readonly env?: Readonly<Record<string, string>> };
}

describe.each(bindings)("F37: two stacks at once on %s", (binding) => {
  let service: TestService;
  let one: Stack;
  let two: Stack;

  beforeAll(async () => {
    service = await startService();
    await makeApp(service, app);
    [one, two] = ["one", "two"].map((name) => new Stack(inject("installed"), name, binding)) as [Stack, Stack];
    for (const stack of [one, two]) {
      stack.program(program("hello"));
      await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    }
    await one.up();
    const copy = (await one.ok("stack", "export")).replaceAll("::one::", "::two::").replaceAll("one-dev", "two-dev");
    writeFileSync(join(two.dir, "state.json"), copy);
    await two.ok("stack", "import", "--file", "state.json");
  });
  afterAll(() => service.close());

  const machines = () => send<Live[]>(service, "GET", `/v1/apps/${app}/machines`);
  const idOf = (stack: Stack, name: string) => stack.state()[name]?.id;

  test("creates in one App whose answers are lost are found by the stack that sent them", async () => {
    one.program(program("hello", ["first", "second"]));
    two.program(program("hello", ["first", "second"]));
    service.fail({ operation: "machines.create", when: "after", status: "reset", times: 4 });
    const outputs = await Promise.all([one.up(), two.up()]);
    for (const output of outputs) expect(counts(output)).toEqual({ created: 2, unchanged: 2 });
    const ids = [one, two].flatMap((stack) => ["first", "second"].map((name) => idOf(stack, name)));
    ids.push(idOf(one, "web"));
    expect((await machines()).map(({ id }) => `${app}/${id}`).sort()).toEqual(ids.sort());
  });

  test("one of two concurrent updates of one Machine is applied, and the other stops, reports it and changes nothing", async () => {
    const own = ["first", "second"];
    one.program(program("from one", own));
    two.program(program("from two", own));
    const since = service.service.audit.last;
    // The first holds the lease until the other has seen it.
    const refused = () =>
      service.service.audit
        .after(since)
        .filter(({ operation, status }) => operation === "machines.acquireLease" && status === 409);
    const both = () => vi.waitFor(() => expect(refused(), "both at the lease at once").not.toEqual([]), hang);
    service.fail({ operation: "machines.update", when: "before", until: both });
    const runs = await Promise.all([one, two].map((stack) => stack.run(["up", "--yes", "--skip-preview"])));
    const asked = service.service.audit.after(since);
    const said = runs.map(({ output }) => output).join("\n");
    expect(runs.map(({ code }) => code === 0).sort(), said).toEqual([false, true]);
    const [winner, loser] = runs[0]?.code === 0 ? [one, two] : [two, one];
    expect(said).toMatch(/Machine \S+ was changed outside of this program.*config\.env/);
    const live = async () =>
      (await machines()).flatMap(({ config }) =>
        config.env?.["GREETING"] === undefined ? [] : [config.env["GREETING"]],
      );
    expect(await live()).toEqual([`from ${winner.name}`]);
    const updates = asked.filter(({ operation, status }) => operation === "machines.update" && status === 200);
    expect(updates).toHaveLength(1);

    // The user of the failed run checks, decides, and runs again; no other Machine was changed.
    await loser.refresh();
    expect(counts(await loser.up())).toEqual({ updated: 1, unchanged: 3 });
    expect(await live()).toEqual([`from ${loser.name}`]);
    expect(counts(await loser.up())).toEqual({ unchanged: 4 });
    expect(counts(await loser.refresh())).toEqual({ unchanged: 4 });
  });

  test("destroying one stack keeps the other's own objects", async () => {
    await one.destroy();
    const left = ["first", "second"].map((name) => idOf(two, name));
    expect((await machines()).map(({ id }) => `${app}/${id}`).sort()).toEqual(left.sort());
    await two.destroy();
    expect(await machines()).toEqual([]);
    await send(service, "DELETE", `/v1/apps/${app}`);
    await expectEmptied(service);
  });
});
