// Commands run in a Machine as part of a deployment (docs/interface.md#commands): a migration, a registration and its
// end.
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { appName } from "../../api/names.ts";
import { duration, optional, parseDuration, required } from "../../api/schema.ts";
import { findMachine } from "../client/listCache.ts";
import { isDestroyed, type MachineKey } from "../client/machine.ts";
import { ApiError, isAmbiguous, MachinesError } from "../client/errors.ts";
import { pathId } from "../core/ids.ts";
import { behaviour, defineResource, type Call, type Problem } from "../core/resource.ts";
import { triggers } from "../shared/triggers.ts";

const command = z.array(z.string()).min(1, "must name a command");
/** The service's maximum seconds of a command. */
const longest = 60;

const inputs = z.object({
  app: required(appName, "App of the Machine: the `id` of an App. Changing it replaces the MachineCommand.", {
    format: "reference",
  }),
  machine: required(
    z.string().min(1),
    "The Machine, which must run: the `id` of a Machine. Changing it replaces the MachineCommand.",
    { format: "reference" },
  ),
  create: optional(command, "Command and arguments to run when this is created; nothing is run when left out.", {
    sensitive: true,
  }),
  update: optional(
    command,
    "Command and arguments to run when any input but `delete` changes; those of `create` when left out.",
    { sensitive: true },
  ),
  delete: behaviour(command.optional())
    .meta({ sensitive: true })
    .describe(
      "Command and arguments to run when this is deleted; if the command fails, this is not deleted. Nothing is run when left out.",
    ),
  triggers: triggers("the command of `update` is run"),
  stdin: optional(z.string(), "Standard input of the commands.", { sensitive: true }),
  timeout: optional(duration(), 'Time that a command may take, for example `"30s"`; at most 60 s.', {
    wireDefault: `${longest}s`,
  }),
  container: optional(z.string().min(1), "Container to run them in; the Machine's main one when left out."),
});

const sealed =
  "It is secret if an input is. In a dynamic resource (`pulumi-machines`) it is always secret, because its host does not report which inputs are secret.";

const outputs = z.object({
  machineId: required(z.string(), "Identifier of the Machine within its App."),
  commandId: required(z.string(), "Random identifier of this resource among those of the Machine."),
  stdout: optional(z.string(), `Standard output of the last command. ${sealed}`),
  stderr: optional(z.string(), `Standard error of the last command. ${sealed}`),
  exitCode: optional(z.int(), "Exit code of the last command. It is 0, because any other code fails the operation."),
});

type Inputs = z.output<typeof inputs>;

const behaviourInputs = ["create", "update", "delete", "triggers", "stdin"] as const;

export const machineCommand = defineResource({
  name: "MachineCommand",
  summary: "Commands that are run in a Machine when this is created, changed and deleted.",
  description:
    "If a command's exit code is not 0, the operation fails with the end of the command's output. A command whose answer is lost is not repeated automatically. This resource cannot be imported.",
  inputs,
  outputs,
  id: pathId("app", "machineId", "commandId"),
  unlisted: "the service does not keep commands",
  noImport: "a command leaves nothing to read; leave the import out, and `create` too if it must not run again",
  replaceOn: ["app", "machine"],
  dependsOn: { stdout: "any", stderr: "any", exitCode: "any" },
  derivedFrom: { stdout: behaviourInputs, stderr: behaviourInputs },
  validate: ({ timeout }) => timeoutProblems(timeout),

  async create({ inputs: wanted, api }) {
    const { app, machine } = wanted;
    const key = { appName: app, machineId: machine };
    const ran = wanted.create ? await run(api, key, wanted.create, wanted) : await nothing(api, key);
    return { machineId: machine, commandId: randomBytes(8).toString("hex"), ...ran };
  },

  async read({ id, state, api }) {
    const { machineId, commandId } = id;
    const live = await findMachine(api, id.app, machineId);
    if (live.state === "destroyed") return undefined;
    const { stdout, stderr, exitCode } = state ?? {};
    return { machineId, commandId, stdout, stderr, exitCode };
  },

  async update({ id, inputs: wanted, api }) {
    const { machineId, commandId } = id;
    const key = { appName: id.app, machineId };
    const words = wanted.update ?? wanted.create;
    return { machineId, commandId, ...(words ? await run(api, key, words, wanted) : {}) };
  },

  async delete({ id, state, api }) {
    if (!state.delete) return;
    const key = { appName: id.app, machineId: id.machineId };
    if (isDestroyed(await api.machines.get(key))) return;
    await run(api, key, state.delete, state).catch((error: unknown) => {
      throw withWayOut(error, key);
    });
  },
});

function timeoutProblems(timeout: string | undefined): Problem[] {
  const seconds = (parseDuration(timeout ?? "1s") ?? 0) / 1e9;
  return seconds >= 1 && seconds <= longest
    ? []
    : [{ path: ["timeout"], message: `got ${JSON.stringify(timeout)}; must be from 1s to ${longest}s` }];
}

/** Why a deletion is impossible, and the alternative. */
function withWayOut(error: unknown, { appName: app, machineId }: MachineKey): unknown {
  if (!(error instanceof MachinesError)) return error;
  const isStopped = error.cause instanceof ApiError && error.cause.status === 412;
  if (!isStopped && error.code !== "machine-failed") return error;
  const repair = isStopped ? `start Machine ${app}/${machineId}` : "repair what it failed on";
  return new MachinesError(
    error.code,
    `the command of \`delete\` must end with exit code 0 before this MachineCommand is deleted: ${error.message}\n` +
      `To delete it, ${repair} and delete again; or take \`delete\` out of the program, run up, and delete again.`,
    { cause: error },
  );
}

/** Without commands, the deletion only makes sure that the Machine exists. */
async function nothing(api: Call["api"], key: MachineKey): Promise<Record<string, never>> {
  await api.machines.get(key);
  return {};
}

/** Runs a command once and returns its output. @throws MachinesError if it fails, or if it is unknown whether it ran */
async function run(
  api: Call["api"],
  key: MachineKey,
  words: string[],
  { stdin, timeout, container }: Pick<Partial<Inputs>, "stdin" | "timeout" | "container">,
) {
  const name = `Machine ${key.appName}/${key.machineId}`;
  const seconds = Math.ceil((parseDuration(timeout ?? `${longest}s`) ?? 0) / 1e9);
  const body = { command: words, stdin, container, timeout: seconds };
  const answer = await api.machines.exec({ ...key, body }).catch((error: unknown) => {
    if (isAmbiguous(error))
      throw new MachinesError(
        "ambiguous",
        `the command may have run in ${name}, and was not sent a second time: ${(error as Error).message} The next up runs it again; see first what it has done.`,
        { cause: error },
      );
    if (error instanceof ApiError && error.status === 412)
      throw new MachinesError("api", `${name} does not run, so that nothing was run in it: ${error.message}`, {
        cause: error,
      });
    throw error;
  });
  const { stdout = "", stderr = "", exitCode = 0, exitSignal = 0 } = answer;
  if (exitCode === 0 && exitSignal === 0) return { stdout, stderr, exitCode };
  const how = exitSignal > 0 ? `was ended by signal ${exitSignal}` : `ended with exit code ${exitCode}`;
  throw new MachinesError("machine-failed", `the command in ${name} ${how}${tailOf([stdout, stderr], stdin)}`);
}

/** The last lines of a command's output, without its input. */
function tailOf(texts: readonly string[], stdin = ""): string {
  const lines = texts.flatMap((text) => text.trimEnd().split("\n")).filter((line) => line !== "");
  if (lines.length === 0) return " and wrote nothing.";
  const given = stdin.split("\n").filter((line) => line.length > 2);
  const shown = lines
    .slice(-20)
    .map((line) => given.reduce((text, read) => text.replaceAll(read, "[stdin]"), line).slice(0, 500));
  return `:\n${shown.join("\n")}`;
}
