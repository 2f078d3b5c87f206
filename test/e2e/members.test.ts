// The real CLI while the leader of three members is killed again and again (F97): every run succeeds, and nothing is lost or exists twice.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, inject, test } from "vitest";
import { startMembers, type Members } from "../service/histories/members.ts";
import { Forwarder } from "../service/replication/forwarder.ts";
import { send } from "../support/around.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { bindingsOr, counts, Stack } from "../support/stack.ts";

const count = 100;
const image = (tag: string): string => `registry.example.com/shop:${tag}`;
const program = `
import * as machines from "pulumi-machines";
import * as pulumi from "@pulumi/pulumi";
const image = new pulumi.Config().require("image");
const app = new machines.App("shop", { name: "shop" });
for (let i = 1; i <= ${count}; i++)
  new machines.Machine(\`one-\${i}\`, { app: app.id, name: \`one-\${i}\`, region: "ams", config: { image: "${image("1")}" } });
new machines.Fleet("web", {
  app: app.id,
  regions: { ams: 10 },
  config: { image },
  strategy: { type: "rolling", maxUnavailable: "20%" },
});
`;

interface Live {
  readonly id: string;
  readonly name: string;
  readonly config: { readonly image: string };
}

/** Passes each connection to the next member that runs. */
async function balancer({ all }: Members): Promise<string> {
  let next = 0;
  const portOf = (): number => {
    const running = all.flatMap((member) => (member.running ? [member.running.url] : []));
    // Without any, the port of no server: the connection is refused.
    return Number(new URL(running[next++ % running.length] ?? "http://localhost:1").port);
  };
  const forwarder = await Forwarder.to(portOf);
  afterThisTest(() => forwarder.close());
  return `http://127.0.0.1:${forwarder.port}`;
}

test.for(bindingsOr("pulumi-machines"))(
  "nothing is lost while the leader is killed every five seconds, %s",
  async (binding) => {
    const members = await startMembers("cli");
    const service = { url: await balancer(members), token: members.all[0]?.running?.token ?? "" };
    const stack = new Stack(inject("installed"), "members", binding);
    stack.program(program);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token, image: image("1") });

    let kills = 0;
    const whileKilling = async (...args: string[]) => {
      const over = new AbortController();
      const killing = (async () => {
        for (;;) {
          await sleep(5000, undefined, { signal: over.signal });
          const leader = await members.leader();
          leader?.signal("SIGKILL");
          kills += Number(leader !== undefined);
        }
      })().catch(() => {});
      const ran = await stack.run(["up", "--yes", "--skip-preview", ...args]);
      over.abort();
      await killing;
      return ran;
    };
    const live = async (): Promise<Live[]> => {
      await members.settled();
      return send<Live[]>(service, "GET", "/v1/apps/shop/machines");
    };
    const names = (all: readonly Live[]) => all.map(({ name }) => name).sort();

    const first = await whileKilling();
    expect(first.code, first.output).toBe(0);
    expect(kills).toBeGreaterThan(0);
    const all = await live();
    expect(all).toHaveLength(count + 10);
    expect(new Set(names(all)).size).toBe(count + 10);
    const ids = Object.entries(stack.state()).flatMap(([name, { id }]) =>
      name.startsWith("one-") ? [id.split("/").at(-1)] : [],
    );
    expect(ids.sort()).toEqual(all.flatMap(({ name, id }) => (name.startsWith("one-") ? [id] : [])).sort());
    expect(counts(await stack.up())).toEqual({ unchanged: count + 3 });

    await stack.set({ image: image("2") });
    const rollout = await whileKilling();
    expect(rollout.code, rollout.output).toBe(0);
    const rolled = await live();
    expect(names(rolled)).toEqual(names(all));
    expect(rolled.filter(({ config }) => config.image === image("2"))).toHaveLength(10);
    expect(counts(await stack.up())).toEqual({ unchanged: count + 3 });
  },
);
