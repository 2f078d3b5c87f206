// What only the leader's copy has is not shown: another leader may never know it.
import { expect, test, vi } from "vitest";
import { createService } from "../../../service/service.ts";
import type { GroupLog } from "../../../service/replication/groupLog.ts";
import { afterThisTest } from "../../support/leftovers.ts";

/** A leading service with a Machine. From `slow` on, its log acknowledges only what `acknowledge` says, oldest first. */
async function slowLog() {
  const waiting: (() => void)[] = [];
  let isSlow = false;
  const log: GroupLog = {
    ...{ begin() {}, end() {}, discard() {}, unsure: undefined },
    committed: () => (isSlow ? new Promise((resolve) => waiting.push(resolve)) : undefined),
  };
  const service = createService({ delays: "none", leading: { log: () => log, lock: { release() {} }, run: "1" } });
  const call = async (method: "GET" | "POST", url: string, payload?: object) => {
    const headers = { authorization: `Bearer ${service.token}` };
    return service.app.inject({ method, url: `/v1${url}`, headers, ...(payload ? { payload } : {}) });
  };
  const acknowledge = (): void => {
    isSlow = false;
    for (const one of waiting.splice(0)) one();
  };
  afterThisTest(() => {
    acknowledge();
    return service.close();
  });
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  const { id } = (await call("POST", "/apps/web/machines", { config: { image: "nginx" } })).json<{ id: string }>();
  const state = () => service.context.store.get("SELECT state FROM machines WHERE id = ?", id);
  return {
    ...{ call, waiting, acknowledge, state, service },
    machine: `/apps/web/machines/${id}`,
    slow: () => (isSlow = true),
  };
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
};

test.each(["is held already", "comes meanwhile"])(
  "a wait that %s does not answer with a state that the log does not have yet",
  async (when) => {
    const { call, waiting, acknowledge, state, service, machine, slow } = await slowLog();
    let answered = false;
    const wait = async () => {
      const answer = await call("GET", `${machine}/wait?state=stopped&timeout=60`);
      answered = true;
      return answer;
    };
    const isHeld = () => vi.waitFor(() => expect(service.context.waits.size).toBe(1));
    const early = when === "is held already" ? wait() : undefined;
    if (early) await isHeld();
    slow();
    const change = call("POST", `${machine}/metadata/key`, { value: "value" });
    await vi.waitFor(() => expect(waiting).toHaveLength(1));
    const late = early ?? wait();
    await turns();
    const stop = call("POST", `${machine}/stop`, {});
    await vi.waitFor(() => expect(state()).toEqual({ state: "stopped" }));
    // The log has the change before the stop, which wakes the wait.
    waiting.shift()?.();
    await change;
    await turns();
    expect(answered).toBe(false);
    acknowledge();
    expect((await late).statusCode).toBe(200);
    await stop;
  },
);
