// A client that calls a check immediately before each request that changes something, repeated requests included.
import { contract } from "../../api/index.ts";
import { byGroup, type Api, type Methods } from "../../provider/client/api.ts";

type Group = keyof typeof contract;
type Method = (args: unknown) => Promise<unknown>;

/** Requests that change nothing of an object: they only make others wait. */
const harmless: readonly string[] = ["machines.acquireLease", "machines.releaseLease"];

/** The same client. A check that throws keeps the request from being sent. */
export function guarded(api: Api, check: () => Promise<void>): Api {
  const methodsOf = (group: Group) => {
    const methods = api[group] as Readonly<Record<string, Method>>;
    const all = Object.entries(contract[group]).map(([name, { id, repeat }]): [string, Method | undefined] => [
      name,
      repeat === "read" || harmless.includes(id)
        ? methods[name]
        : async (args) => {
            await check();
            return methods[name]?.(args);
          },
    ]);
    return Object.fromEntries(all) as Methods[Group];
  };
  const { config, clock, deadline, session } = api;
  return Object.assign(byGroup(methodsOf), {
    ...{ config, clock, deadline, session },
    within: (other: Api["deadline"]) => guarded(api.within(other), check),
    reportRollout: (report: Parameters<Api["reportRollout"]>[0]) => api.reportRollout(report),
    rollouts: (query: Parameters<Api["rollouts"]>[0]) => api.rollouts(query),
    readOwn: (path: string) => api.readOwn(path),
    close: () => api.close(),
  });
}
