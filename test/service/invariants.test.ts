// A long random life under a random clock: no sequence of operations causes a contradiction.
import { expect, test } from "vitest";
import { createService, ManualClock, seededRandom } from "../../service/index.ts";
import { effects, machineStates, restingStates, steps } from "../../service/states/machineStates.ts";

const seeds = ["one", "two", "three", "four"];
const operations = 500;
const images = [
  "nginx",
  "nginx:2",
  "nginx:simulate-crash",
  "nginx:simulate-exit-0",
  "nginx:simulate-exit-1",
  "nginx:simulate-oom",
];

/** Random numbers below a bound, the same for the same seed. */
function dice(seed: string): (sides: number) => number {
  const random = seededRandom(`dice ${seed}`);
  return (sides) => {
    const [a = 0, b = 0] = random(2);
    return (a * 256 + b) % sides;
  };
}

const ofNow = "machine_versions c ON c.machine = m.id AND c.version = m.version";

// Every query finds contradictions.
const contradictions = {
  "a transient state without a next step": `SELECT id, state FROM machines m WHERE state IN (${Object.keys(steps)
    .map((state) => `'${state}'`)
    .join(", ")}) AND NOT EXISTS (SELECT 1 FROM timers t WHERE t.subject = m.id AND t.kind = 'runtime.step')`,
  "two steps for one Machine":
    "SELECT subject FROM timers WHERE kind = 'runtime.step' GROUP BY subject HAVING count(*) > 1",
  "a destroyed state without a time, or the reverse":
    "SELECT id FROM machines WHERE (state = 'destroyed') <> (destroyed_at IS NOT NULL)",
  "a state that differs from its latest transition":
    "SELECT id, state FROM machines m WHERE state <> (SELECT status FROM events e WHERE e.machine = m.id AND moved = 1 ORDER BY e.id DESC LIMIT 1)",
  "a version that is not listed":
    "SELECT id FROM machines m WHERE NOT EXISTS (SELECT 1 FROM machine_versions v WHERE v.machine = m.id AND v.version = m.version)",
  "a destroyed Machine with a lease":
    "SELECT id FROM machines m WHERE state = 'destroyed' AND EXISTS (SELECT 1 FROM leases l WHERE l.machine = m.id)",
  "a volume attached to a Machine that does not mount it": `SELECT v.id FROM volumes v JOIN machines m ON m.id = v.machine JOIN ${ofNow} WHERE m.destroyed_at IS NULL AND m.state NOT IN ('replacing', 'destroying') AND instr(c.config, v.id) = 0`,
  "a mount whose volume is not attached": `SELECT m.id FROM machines m JOIN ${ofNow}, volumes v WHERE m.destroyed_at IS NULL AND instr(c.config, v.id) > 0 AND v.machine IS NOT m.id`,
  "an attached volume with a pending deletion":
    "SELECT id FROM volumes WHERE machine IS NOT NULL AND state IN ('scheduling_destroy', 'pending_destroy')",
  "two unfinished snapshots of a volume":
    "SELECT volume FROM snapshots WHERE status = 'pending' GROUP BY volume HAVING count(*) > 1",
  "a region whose use is miscounted":
    "SELECT region FROM region_use u WHERE machines <> (SELECT count(*) FROM machines m WHERE m.region = u.region AND m.cpu_kind = u.cpu_kind AND destroyed_at IS NULL)",
  "secrets that are not there":
    "SELECT id FROM machines WHERE secret_set IS NOT NULL AND secret_set NOT IN (SELECT id FROM secret_sets)",
  "secrets without an owner":
    "SELECT s.id FROM secret_sets s JOIN apps a ON a.id = s.app WHERE s.version <> a.secrets_version AND s.id NOT IN (SELECT secret_set FROM machines WHERE secret_set IS NOT NULL)",
} as const;

test.each(seeds)("there is no contradiction in the life %s", async (seed) => {
  const roll = dice(seed);
  const pick = <T>(from: readonly T[]): T | undefined => from[roll(from.length)];
  const clock = new ManualClock();
  const service = createService({ clock, random: seededRandom(seed), delays: "believable", strict: true });
  const call = async (method: "GET" | "POST" | "PUT" | "DELETE", path: string, payload?: object) => {
    const headers = { authorization: `Bearer ${service.token}` };
    const answer = await service.app.inject({ method, url: `/v1${path}`, headers, ...(payload ? { payload } : {}) });
    if (answer.statusCode >= 500) throw new Error(`${method} ${path} gave ${answer.statusCode} ${answer.body}`);
    return { status: answer.statusCode, body: answer.body === "" ? undefined : JSON.parse(answer.body) };
  };
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const machines: string[] = [];
  const volumes: string[] = [];
  const config = () => ({
    image: pick(images),
    restart: { policy: pick(["no", "on-failure", "always"]), max_retries: roll(3) },
    auto_destroy: roll(6) === 0,
    ...(roll(3) === 0 && volumes.length > 0 ? { mounts: [{ volume: pick(volumes), path: "/d" }] } : {}),
    ...(roll(8) === 0 ? { schedule: "hourly" } : {}),
  });
  const acts: (() => Promise<unknown>)[] = [
    async () => {
      const made = await call("POST", "/apps/web/machines", {
        config: config(),
        skip_launch: roll(2) === 0,
        ...(roll(4) === 0 ? { lease_ttl: 1 + roll(5) } : {}),
      });
      if (made.status === 200) machines.push(made.body.id);
    },
    async () => {
      const made = await call("POST", "/apps/web/volumes", { name: "data" });
      if (made.status === 200) volumes.push(made.body.id);
    },
    () => call("POST", `/apps/web/machines/${pick(machines)}`, { config: config(), skip_launch: roll(2) === 0 }),
    () =>
      call(
        "POST",
        `/apps/web/machines/${pick(machines)}/${pick(["start", "stop", "restart", "suspend", "cordon", "uncordon", "lease"])}`,
      ),
    () => call("POST", `/apps/web/machines/${pick(machines)}/${pick(["start", "stop", "restart", "suspend"])}`),
    () => call("DELETE", `/apps/web/machines/${pick(machines)}${roll(2) === 0 ? "?force=true" : ""}`),
    () => call("DELETE", `/apps/web/volumes/${pick(volumes)}`),
    () => call("POST", `/apps/web/volumes/${pick(volumes)}/snapshots`),
    () => call("PUT", `/apps/web/volumes/${pick(volumes)}/extend`, { size_gb: 1 + roll(20) }),
    async () => clock.advance(roll(400)),
    async () => clock.advance(roll(400)),
    async () => clock.advance(roll(40) === 0 ? 3_600_000 : 2000),
  ];
  for (let i = 0; i < operations; i++) {
    await pick(acts)?.();
    for (const [name, sql] of Object.entries(contradictions))
      expect([i, name, service.context.store.all(sql)]).toEqual([i, name, []]);
  }
  expect(machines.length).toBeGreaterThan(10);
  await service.close();
});

test("every state is stable, final, or has a step that leaves it", () => {
  for (const state of machineStates) {
    const kinds = [restingStates.includes(state), state === "destroyed", steps[state] !== undefined].filter(Boolean);
    expect([state, kinds.length]).toEqual([state, 1]);
  }
  for (const row of Object.values(effects)) expect(Object.keys(row).sort()).toEqual([...machineStates].sort());
});
