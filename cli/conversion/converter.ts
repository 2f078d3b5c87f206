// Pulumi's converter protocol: the process that `pulumi convert --from machines-toml` starts.
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import grpc from "@grpc/grpc-js";
import proto from "@pulumi/pulumi/proto/converter_pb.js";
import type * as rpc from "@pulumi/pulumi/proto/converter_pb.js";
import converterGrpc from "@pulumi/pulumi/proto/converter_grpc_pb.js";
import hcl from "@pulumi/pulumi/proto/codegen/hcl_pb.js";
import type { Diagnostic } from "@pulumi/pulumi/proto/codegen/hcl_pb.js";
import { MachinesError, messageOf } from "../../provider/client/errors.ts";
import { pcl } from "../organization/languages/pcl.ts";
import { contentsBeside, reminder, textIn } from "./command.ts";
import { convert } from "./conversion.ts";

/** Serves until Pulumi ends the process. */
export async function serveConverter(): Promise<void> {
  const { port } = await startConverter();
  process.stdout.write(`${port}\n`);
  const parent = process.ppid;
  // A killed CLI cannot end it.
  setInterval(() => {
    if (process.ppid !== parent) process.exit(0);
  }, 1000).unref();
}

/** Starts the server on a port of its own. */
export async function startConverter(): Promise<{ readonly port: number; readonly close: () => void }> {
  const server = new grpc.Server();
  server.addService(converterGrpc.ConverterService, {
    convertProgram: (call: Call<rpc.ConvertProgramRequest>, answer: Answer) => {
      try {
        answer(null, convertProgram(call.request));
      } catch (error) {
        answer({ code: grpc.status.INTERNAL, details: messageOf(error) });
      }
    },
    convertState: refuse("machines-toml converts programs. To import what exists, run `npx pulumi-machines import`."),
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
    const source = { name, text: textIn(file), regions: given.regions, read: contentsBeside(file) };
    const { program, remarks } = convert(source);
    writeFileSync(join(request.getTargetDirectory(), "main.pp"), pcl(program));
    return answer.setDiagnosticsList([
      ...remarks.map(({ line, key, text }) => diagnostic(DIAG_WARNING, [name, line], key, text)),
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

function diagnostic(
  severity: hcl.DiagnosticSeverity,
  [name, line, column = 1]: readonly [name: string, line: number, column?: number],
  summary: string,
  detail: string,
): Diagnostic {
  const at = new hcl.Pos().setLine(line).setColumn(column);
  const range = new hcl.Range().setFilename(name).setStart(at).setEnd(at);
  return new hcl.Diagnostic().setSeverity(severity).setSummary(summary).setDetail(detail).setSubject(range);
}

/** The words after `--`. */
function argumentsIn(words: string[]): { readonly name: string; readonly regions: string | undefined } {
  try {
    const { values, positionals } = parseArgs({
      ...{ args: words, options: { regions: { type: "string" } }, allowPositionals: true },
    });
    return { name: positionals[0] ?? "fly.toml", regions: values.regions };
  } catch (error) {
    throw new MachinesError("invalid-input", messageOf(error), { cause: error });
  }
}
