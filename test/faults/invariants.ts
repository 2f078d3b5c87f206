// Invariants that must remain true whatever fault occurs.
import { ApiError, MachinesError, messageOf } from "../../provider/client/errors.ts";
import { pendingDeletionAdvice } from "../../provider/core/dataLoss.ts";
import { resources } from "../../provider/registry.ts";
import { operationsById } from "../../service/faults/faults.ts";
import type { Audited, Service } from "../../service/index.ts";
import { CheckFailed, EngineRefused, NotFound, type Report, type Step } from "../support/modelEngine.ts";
import type { Stack } from "../support/modelStack.ts";
import type { ProviderProcess } from "../support/simulation.ts";
import type { TestService } from "../support/startService.ts";
import { inState, linesOf, onService } from "./inventory.ts";
import { canary } from "./programs.ts";

/** An invariant is violated. */
export class Broken extends Error {}

/** Seconds that a step may take beyond its deadline, to release leases and finish the last read. */
const grace = 20;

/** I4, I7: no step exceeds its time limit, or sends more requests than waiting for that long explains. */
export function judgeStep({ verb, type, name }: Step, ms: number, requests: number): void {
  const minutes =
    verb === "create" || verb === "update" || verb === "delete" ? (resources[type]?.minutes[verb] ?? 10) : 2;
  if (ms > (minutes * 60 + grace) * 1000)
    throw new Broken(`${verb} ${name} took ${ms / 1000} s; it may take ${minutes} minutes`);
  // A rollout of the campaign changes three Machines, and may create as many beside them.
  const objects = type === "Fleet" ? 6 : 1;
  const bound = 40 * objects + (ms / 1000) * 4;
  if (requests > bound) throw new Broken(`${verb} ${name} sent ${requests} requests in ${ms} ms`);
}

/** Whether the error is a refusal to lose data, or the engine's own refusal of a protected resource or a non-target. */
export const isRefusal = (error: unknown): boolean =>
  error instanceof EngineRefused ||
  ((error instanceof CheckFailed || (error instanceof MachinesError && error.code === "refused")) &&
    /allowDataLoss|deletionProtection|forceDestroy/.test(messageOf(error)));

/** The creates that were refused because the original of an earlier replacement, whose deletion is pending, has the name. */
export const heldByOriginals = (report: Report, { resources: all }: Stack): Report =>
  report.filter(
    ({ verb, type, name, error }) =>
      verb === "create" &&
      messageOf(error).includes(pendingDeletionAdvice) &&
      // With --continue-on-error, the run deletes the original after the refusal.
      (all.some((kept) => kept.type === type && kept.name === name && kept.mark === "leaving") ||
        report.some((step) => step.verb === "delete" && step.name === name && step.error === undefined)),
  );

/** I5, I6: failures are reported correctly, and no secret is printed. */
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
      throw new Broken(`a message contains a secret: ${text}`);
    if (/PRIVATE KEY|undefined|\[object|NaN|Infinity/.test(text))
      throw new Broken(`a message contains nonsense: ${text}`);
  }
  for (const error of errors) {
    if (error instanceof Broken) throw error;
    if (mayRefuse && isRefusal(error)) continue;
    if (error instanceof CheckFailed) throw new Broken(`inputs were refused: ${error.message}`);
    if (error instanceof NotFound) continue;
    if (!(error instanceof MachinesError)) throw error as Error;
    if (error instanceof ApiError && !error.message.includes(String(error.status)))
      throw new Broken(`a message lacks the status: ${error.message}`);
    if (error instanceof ApiError && !error.message.includes(error.operation))
      throw new Broken(`a message lacks the operation: ${error.message}`);
  }
}

/** I3: operations that need the lease used the valid nonce, or no lease existed, as right after a creation. */
export function judgeAudit(entries: readonly Audited[]): void {
  for (const { operation, status, lease, nonce, path } of entries) {
    if (operation === null || operationsById.get(operation)?.lease !== "guarded") continue;
    if (status === null || status >= 300 || lease === "own" || (lease === "none" && !nonce)) continue;
    // A repeated deletion may find the Machine destroyed, and its lease gone with it.
    if (operation !== "machines.destroy" || lease === "other")
      throw new Broken(`${operation} of ${path} was done with a lease that is not ours`);
  }
}

/** I13: every object reported as created, even partially, is in the state or does not exist. */
export function judgeMade(report: Report, stack: Stack, service: Service): void {
  const known = new Set([...inState(stack), ...stack.orphans.flatMap(linesOf)]);
  const there = new Set(onService(service));
  for (const { type, name, made = [] } of report)
    for (const { id, state } of made) {
      const lines = linesOf({ type, name, id, inputs: {}, state, needs: [], failed: [] });
      const forgotten = lines.filter((line) => there.has(line) && !known.has(line));
      if (forgotten.length > 0)
        throw new Broken(
          `${forgotten.join(", ")} was reported as created for ${name}, and the run ends without knowing of it`,
        );
    }
}
