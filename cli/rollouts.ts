// `pulumi-machines history`: the rollouts that the service of a stack has, newest first.
import { stackInUrn } from "../api/urn.ts";
import { MachinesError } from "../provider/client/errors.ts";
import { readConfig } from "../provider/client/config.ts";
import { newClient } from "../provider/client/connect.ts";
import type { ShownRollout } from "../provider/client/rollouts.ts";
import { stackConfig } from "./pulumi.ts";
import { tableOf, type Cell, type Style } from "./style.ts";
import type { Streams } from "./terminal.ts";
import { ago } from "./time.ts";

/** Options of the command. */
export interface HistoryOptions {
  readonly stack?: string;
  readonly app?: string;
  readonly limit: number;
  readonly json?: true;
}

/**
 * Shows the rollouts.
 * @returns 1 if the latest one of an App, or of one of its fleets, has failed, was rolled back or was interrupted, else 0
 * @throws MachinesError `configuration` if the stack cannot be read, or if its service keeps no history
 */
export async function showHistory({ stack, app, limit, json }: HistoryOptions, { out, err }: Streams): Promise<0 | 1> {
  const own = await stackConfig(stack);
  const config = readConfig((key) => own.get(key), process.env);
  const found = await newClient(config, err).rollouts({ app, limit });
  if (!found)
    throw new MachinesError(
      "configuration",
      `${config.endpoint} keeps no history of rollouts: only a machines-service does, unless it was started without`,
    );
  const { rollouts, now } = found;
  out(`${json ? JSON.stringify(rollouts, null, 2) : textOf(rollouts, new Date(now))}\n`);
  const latest = new Map(rollouts.toReversed().map((one) => [nameOf(one), one]));
  return [...latest.values()].some(({ result }) => isBad(result)) ? 1 : 0;
}

/**
 * The latest rollout of each App and fleet that a stack has changed, if it did not succeed, as a sentence.
 * @param stack `project/stack`
 * @param config configuration of the stack
 */
export async function failedRollouts(stack: string, config: ReadonlyMap<string, string>): Promise<readonly string[]> {
  const settings = readConfig((key) => config.get(key), process.env);
  const { rollouts = [] } = (await newClient(settings, () => {}).rollouts({ limit: 200 })) ?? {};
  const own = rollouts.filter((one) => stackOf(one) === stack);
  const latest = new Map(own.toReversed().map((one) => [nameOf(one), one]));
  return [...latest.values()]
    .filter(({ result }) => isBad(result))
    .map(
      (one) =>
        `the rollout of ${nameOf(one)} ${verbOf[one.result ?? ""] ?? "failed"}: ${one.reason ?? "no reason is known"}`,
    );
}

const verbOf: Readonly<Record<string, string>> = { "rolled back": "was rolled back", interrupted: "was interrupted" };

/** What a rollout changes. */
export const nameOf = ({ app, fleet }: ShownRollout): string => (fleet === null ? app : `${app}/${fleet}`);

const isBad = (result: string | null): boolean =>
  result === "failed" || result === "rolled back" || result === "interrupted";

/** The stack that a URN is of, `project/stack`; undefined if it does not say. */
function stackOf({ urn }: ShownRollout): string | undefined {
  const found = stackInUrn(urn);
  return found && `${found.project}/${found.stack}`;
}

const styleOf = (result: string | null): Style => (isBad(result) ? "bad" : result === "succeeded" ? "good" : "unsure");

/** How it went, in words. */
function resultOf({ result, phase }: ShownRollout): string {
  if (result === "waiting") return "waits for its promotion";
  return result ?? (phase === "rolling back" ? "under way, rolling back" : "under way");
}

const seconds = (ms: number): string =>
  ms < 10_000
    ? `${(ms / 1000).toFixed(1)} s`
    : ms < 600_000
      ? `${Math.round(ms / 1000)} s`
      : `${Math.round(ms / 60_000)} min`;

const imagesOf = ({ from, to }: ShownRollout): string =>
  from === null || from === to ? (to ?? "") : `${from} -> ${to ?? "?"}`;

function textOf(rollouts: readonly ShownRollout[], now: Date): string {
  if (rollouts.length === 0) return "No run of Pulumi has changed Machines yet.";
  const rows = rollouts.map((one): Cell[] => [
    ago(new Date(one.began).toISOString(), now),
    nameOf(one),
    { text: resultOf(one), style: styleOf(one.result) },
    imagesOf(one),
    one.strategy ?? "",
    seconds((one.ended ?? now.getTime()) - one.began),
    Object.entries(one.machines)
      .map(([doing, n]) => `${n} ${doing}`)
      .join(", "),
    stackOf(one) ?? one.tokenName ?? one.token,
  ]);
  const reasons = rollouts.flatMap((one) =>
    one.reason === null ? [] : [`${nameOf(one)}, ${ago(new Date(one.began).toISOString(), now)}: ${one.reason}`],
  );
  const table = tableOf(["BEGAN", "WHAT", "RESULT", "IMAGE", "STRATEGY", "TOOK", "MACHINES", "BY"], rows);
  return [table, ...(reasons.length > 0 ? ["", ...reasons] : [])].join("\n");
}
