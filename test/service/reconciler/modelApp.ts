// A whole service on a model of an engine.
import type { ServiceOptions } from "../../../service/index.ts";
import type { Reports } from "../../../service/runtime/reconciler/driver.ts";
import { Reconciler } from "../../../service/runtime/reconciler/reconciler.ts";
import type { Clock } from "../../../service/time/clock.ts";
import { expect } from "vitest";
import { withApp } from "../client.ts";
import { containers, ModelDriver, ModelEngine, type Kind } from "./modelEngine.ts";

/** A service with an App `web`, whose Machines run on a model of an engine, by default one that is like Docker. */
export async function withModel<C extends Clock | undefined = undefined>(
  options: ServiceOptions & { clock?: C } = {},
  kind: Partial<Kind> = {},
  changeDriver: (driver: ModelDriver) => void = () => {},
) {
  const engine = new ModelEngine({ ...containers, ...kind });
  let reports: Reports | undefined;
  const app = await withApp<C>({
    ...options,
    runtime: (host) =>
      new Reconciler(host, (given) => {
        reports = given;
        const driver = new ModelDriver(engine, host, given);
        changeDriver(driver);
        return driver;
      }),
  });
  await expect.poll(() => engine.driver?.isReady).toBe(true);
  const { store } = app.service.context;
  const { hooks } = store;
  return {
    ...app,
    engine,
    /** Lets the first transaction fail in which a query finds something, as a full disk does. Resolves when it has failed. */
    failFirst: (sql: string): Promise<void> =>
      new Promise((resolve) => {
        store.hooks = {
          ...hooks,
          beforeCommit() {
            hooks.beforeCommit();
            if (!store.get(sql)) return;
            store.hooks = hooks;
            resolve();
            throw Object.assign(new Error("database or disk is full"), { errcode: 13 });
          },
        };
      }),
    /** Resolves when nothing is left to do for a Machine, until something changes. */
    idle: async (id: string) => (await reports?.hold(id))?.(),
  };
}
