// Pulumi's converter protocol: the process that `pulumi convert --from machines-toml` and `pulumi import --from machines`
// start.
import { writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import grpc from "@grpc/grpc-js";
import proto from "@pulumi/pulumi/proto/converter_pb.js";
import type * as rpc from "@pulumi/pulumi/proto/converter_pb.js";
import converterGrpc from "@pulumi/pulumi/proto/converter_grpc_pb.js";
import hcl from "@pulumi/pulumi/proto/codegen/hcl_pb.js";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { pcl } from "../organization/languages/pcl.ts";
import { limitsOf, withinLimits } from "../organization/limits.ts";
import { convertState } from "../organization/stateConverter.ts";
import { reminder, textIn } from "./command.ts";
import { convert } from "./conversion.ts";
import { diagnostic } from "./diagnostic.ts";
import { filesBeside } from "./localFiles.ts";

/** Names of the converter: one executable converts files and lists organizations, each under a name of its own. */
export type ConverterName = "machines" | "machines-toml";

/**
 * Serves until Pulumi ends the process.
 * @param executable the path that Pulumi started, by which it is known what the user named
 */
export async function serveConverter(executable: string): Promise<void> {
  // Where a shim starts the file itself, it has no name of its own and serves both.
  const [, name] = /^pulumi-converter-(machines|machines-toml)(?:\.\w+)?$/.exec(basename(executable)) ?? [];
  const { port } = await startConverter(name as ConverterName | undefined);
  process.stdout.write(`${port}\n`);
  const parent = process.ppid;
  // A killed CLI cannot end it.
  setInterval(() => {
    if (process.ppid !== parent) process.exit(0);
  }, 1000).unref();
}

/** Starts the server on a port of its own. */
export async function startConverter(
  name: ConverterName | undefined,
): Promise<{ readonly port: number; readonly close: () => void }> {
  const server = new grpc.Server();
  server.addService(converterGrpc.ConverterService, {
    convertProgram:
      name === "machines"
        ? refuse("machines imports what exists. To convert a deployment file, add --from machines-toml.")
        : answering(convertProgram),
    convertState:
      name === "machines-toml"
        ? refuse("machines-toml converts programs. To import what exists, run `pulumi import --from machines`.")
        : answering(convertState),
    convertSnippet: refuse("machines-toml converts whole files. Run `pulumi convert --from machines-toml`."),
  });
  const port = await new Promise<number>((done, fail) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error ? fail(error) : done(bound),
    );
  });
  return { port, close: () => server.forceShutdown() };
}

type Call<T> = grpc.ServerUnaryCall<T, unknown>;
type Answer = grpc.sendUnaryData<unknown>;

const answering =
  <Q, A>(work: (request: Q) => A | Promise<A>) =>
  (call: Call<Q>, answer: Answer): void => {
    const fail = (error: unknown): void => {
      const code = error instanceof MachinesError ? grpc.status.INVALID_ARGUMENT : grpc.status.INTERNAL;
      answer({ code, details: messageOf(error) });
    };
    void Promise.resolve(call.request)
      .then(work)
      .then((done) => answer(null, done), fail);
  };

const refuse =
  (details: string) =>
  (_call: Call<unknown>, answer: Answer): void =>
    answer({ code: grpc.status.UNIMPLEMENTED, details });

/** Writes `main.pp`. Problems of the file are among the diagnostics. */
export function convertProgram(request: rpc.ConvertProgramRequest): rpc.ConvertProgramResponse {
  const answer = new proto.ConvertProgramResponse();
  const { DIAG_ERROR, DIAG_WARNING } = hcl.DiagnosticSeverity;
  let name = "";
  try {
    const given = argumentsIn(request.getArgsList());
    ({ name } = given);
    const file = resolve(request.getSourceDirectory(), name);
    const beside = filesBeside(file, given.allowed);
    const { program, remarks } = convert({ name, text: textIn(file), regions: given.regions, read: beside.read });
    beside.finish();
    const fitting = withinLimits(program, limitsOf.pcl, { exists: false });
    writeFileSync(join(request.getTargetDirectory(), "main.pp"), pcl(fitting));
    const leftOut = fitting.remarks.slice(program.remarks.length);
    return answer.setDiagnosticsList([
      ...remarks.map(({ line, key, text }) => diagnostic(DIAG_WARNING, [name, line], key, text)),
      ...leftOut.map((text) => diagnostic(DIAG_WARNING, [name, 1], "Not in the program", text)),
      diagnostic(DIAG_WARNING, [name, 1], ...reminder),
    ]);
  } catch (error) {
    if (!(error instanceof MachinesError)) throw error;
    const problems = messageOf(error).split("\n");
    return answer.setDiagnosticsList(
      problems.map((problem) => {
        const [, line, column, text] = /:(\d+)(?::(\d+))?: (.*)$/.exec(problem) ?? [];
        const at = [name, Number(line ?? 1), Number(column ?? 1)] as const;
        return diagnostic(DIAG_ERROR, at, "The deployment file cannot be converted", text ?? problem);
      }),
    );
  }
}

interface Arguments {
  readonly name: string;
  readonly regions: string | undefined;
  /** Files outside of the folder that may be read. */
  readonly allowed: readonly string[] | undefined;
}

/** The words after `--`. */
function argumentsIn(words: string[]): Arguments {
  try {
    const { values, positionals } = parseArgs({
      ...{ args: words, allowPositionals: true },
      options: { regions: { type: "string" }, "allow-file": { type: "string", multiple: true } },
    });
    return { name: positionals[0] ?? "fly.toml", regions: values.regions, allowed: values["allow-file"] };
  } catch (error) {
    throw new MachinesError("invalid-input", messageOf(error), { cause: error });
  }
}
