// What must hold whatever goes wrong.
import { ApiError, MachinesError, messageOf } from "../../provider/core/errors.ts";
import { resources } from "../../provider/resources/index.ts";
import { operationsById } from "../../service/faults/faults.ts";
import type { Audited, Service } from "../../service/index.ts";
import { CheckFailed, EngineRefused, NotThere, type Report, type Step } from "../support/modelEngine.ts";
import type { Stack } from "../support/modelStack.ts";
import type { ProviderProcess } from "../support/simulation.ts";
import type { TestService } from "../support/startService.ts";
import { inState, linesOf, onService } from "./inventory.ts";
import { canary } from "./programs.ts";

/** Something does not hold. */
export class Broken extends Error {}

/** Seconds a step may take beyond its deadline: leases are given back, the last look is heard out. */
const grace = 20;

/** I4, I7: no step takes longer than it may, or asks more than waiting for so long explains. */
export function judgeStep({ verb, type, name }: Step, ms: number, requests: number): void {
  const minutes =
    verb === "create" || verb === "update" || verb === "delete" ? (resources[type]?.minutes[verb] ?? 10) : 2;
  if (ms > (minutes * 60 + grace) * 1000)
    throw new Broken(`${verb} ${name} took ${ms / 1000} s; it may take ${minutes} minutes`);
  const bound = 40 + (ms / 1000) * 4;
  if (requests > bound) throw new Broken(`${verb} ${name} sent ${requests} requests in ${ms} ms`);
}

/** Whether it is the refusal of a loss, or the engine's own of what is protected or no target. */
export const isRefusal = (error: unknown): boolean =>
  error instanceof EngineRefused ||
  ((error instanceof CheckFailed || (error instanceof MachinesError && error.code === "refused")) &&
    /allowDataLoss|deletionProtection|forceDestroy/.test(messageOf(error)));

/** I5, I6: what failed is told as it should be, and nothing secret is told. */
export function judgeReport(
  report: Report,
  said: ProviderProcess["said"],
  { token }: Pick<TestService, "token">,
  mayRefuse = false,
): void {
  const errors = report.flatMap(({ error }) => (error === undefined ? [] : [error]));
  const texts = [...said.map(({ text }) => text), ...errors.map(messageOf)];
  for (const text of texts) {
    if (
      text.includes(canary) ||
      text.includes(Buffer.from(canary).toString("base64").slice(0, 18)) ||
      text.includes(token)
    )
      throw new Broken(`a message tells a secret: ${text}`);
    if (/PRIVATE KEY|undefined|\[object|NaN|Infinity/.test(text)) throw new Broken(`a message tells nonsense: ${text}`);
  }
  for (const error of errors) {
    if (error instanceof Broken) throw error;
    if (mayRefuse && isRefusal(error)) continue;
    if (error instanceof CheckFailed) throw new Broken(`inputs were refused: ${error.message}`);
    if (error instanceof NotThere) continue;
    if (!(error instanceof MachinesError)) throw error as Error;
    if (error instanceof ApiError && !error.message.includes(String(error.status)))
      throw new Broken(`a message lacks the status: ${error.message}`);
    if (error instanceof ApiError && !error.message.includes(error.operation))
      throw new Broken(`a message lacks the operation: ${error.message}`);
  }
}

/** I3: what a lease guards was done with the nonce that holds, or while nobody held one: in the moment of a creation. */
export function judgeAudit(entries: readonly Audited[]): void {
  for (const { operation, status, lease, nonce, path } of entries) {
    if (operation === null || operationsById.get(operation)?.lease !== "guarded") continue;
    if (status === null || status >= 300 || lease === "own" || (lease === "none" && !nonce)) continue;
    // A deletion that is sent again may find the Machine destroyed, and its lease gone with it.
    if (operation !== "machines.destroy" || lease === "other")
      throw new Broken(`${operation} of ${path} was done with a lease that is not ours`);
  }
}

/** I13: what was told to be made, also in part, is in the state, or there is nothing of it. */
export function judgeMade(report: Report, stack: Stack, service: Service): void {
  const known = new Set([...inState(stack), ...stack.orphans.flatMap(linesOf)]);
  const there = new Set(onService(service));
  for (const { type, name, made = [] } of report)
    for (const { id, state } of made) {
      const lines = linesOf({ type, name, id, inputs: {}, state, needs: [], failed: [] });
      const forgotten = lines.filter((line) => there.has(line) && !known.has(line));
      if (forgotten.length > 0)
        throw new Broken(
          `${forgotten.join(", ")} was told to be made for ${name}, and the run ends without knowing of it`,
        );
    }
}
