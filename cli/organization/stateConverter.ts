// The answer to `pulumi import --from machines`: what an organization has, under the names that `pulumi-machines import`
// gives it.
import { parseArgs } from "node:util";
import proto from "@pulumi/pulumi/proto/converter_pb.js";
import type * as rpc from "@pulumi/pulumi/proto/converter_pb.js";
import hcl from "@pulumi/pulumi/proto/codegen/hcl_pb.js";
import { didYouMean } from "../../api/didYouMean.ts";
import { homepage } from "../../api/homepage.ts";
import { MachinesError } from "../../provider/client/errors.ts";
import { isDynamic } from "../stackState.ts";
import { version } from "../version.ts";
import { diagnostic } from "../conversion/diagnostic.ts";
import type { Found } from "./discovery.ts";
import { importsOf, namesOf } from "./model.ts";
import { projectHere, readOrganization } from "./reading.ts";
import { unreadableOf } from "./types.ts";

/** As in the SDKs, so that the provider of the imported resources is that of the program. */
const pluginDownloadURL = homepage.replace("https://", "github://api.");

/** The words after `--`. */
interface Arguments {
  readonly org: string | undefined;
  readonly app: readonly string[] | undefined;
  readonly stack: string | undefined;
  readonly snapshots: boolean;
}

/**
 * Reads the organization. What cannot be imported is among the diagnostics.
 * @throws MachinesError with a message in one sentence
 */
export async function convertState(request: rpc.ConvertStateRequest): Promise<rpc.ConvertStateResponse> {
  const { stack, ...selection } = argumentsIn(request.getArgsList());
  const warnings: string[] = [];
  const warn = (message: string): void => void warnings.push(message);
  const project = await projectHere(stack);
  const { discovery, config } = await readOrganization(project, selection, warn);
  // Pulumi skips what the state holds under the same name. A dynamic resource has another type, and would be imported twice.
  const found = discovery.found.filter(({ held }) => held === undefined || !isDynamic(held.urn));
  const dynamic = discovery.found.filter((one) => !found.includes(one));
  if (found.length === 0)
    throw new MachinesError(
      "invalid-input",
      `stack ${project.state.stack ?? ""} holds all of organization ${config.organization} as dynamic resources, so nothing is left to import`,
    );
  const names = namesOf(discovery.found);
  const imports = importsOf(found, names).map(({ type, name, id }) =>
    new proto.ResourceImport()
      .setType(type)
      .setName(name)
      .setLogicalName(name)
      .setId(id)
      .setVersion(version)
      .setPlugindownloadurl(pluginDownloadURL),
  );
  const where = `organization ${config.organization}`;
  const notes = (summary: string, details: readonly string[]) =>
    details.map((detail) => diagnostic(hcl.DiagnosticSeverity.DIAG_WARNING, [where, 1], summary, detail));
  return new proto.ConvertStateResponse()
    .setResourcesList(imports)
    .setDiagnosticsList([
      ...notes("Look at this", [...warnings, ...discovery.warnings]),
      ...notes("To be set in the program", unreadableIn(found)),
      ...notes("Not imported", [
        ...dynamic.map(({ key, held }) => `${key}: ${held?.urn ?? ""} has it.`),
        ...discovery.remarks,
      ]),
    ]);
}

/** What the program has to set, because the service never shows it. */
const unreadableIn = (found: readonly Found[]): readonly string[] =>
  found.flatMap(({ key, type, held }) => {
    const inputs = unreadableOf(type);
    return inputs.length === 0 || held !== undefined
      ? []
      : [
          `${key}: the service does not show its ${inputs.join(" and ")}. Ignore changes of that, or set the real value.`,
        ];
  });

const options = {
  org: { type: "string" },
  app: { type: "string", multiple: true },
  stack: { type: "string" },
  snapshots: { type: "boolean" },
} as const;

/** @throws MachinesError `invalid-input` for an argument that there is not */
function argumentsIn(words: string[]): Arguments {
  const { values, tokens } = parseArgs({ args: words, options, allowPositionals: true, strict: false, tokens: true });
  const wrong = (message: string): never => {
    throw new MachinesError("invalid-input", message);
  };
  for (const token of tokens) {
    if (token.kind === "positional")
      wrong(`${token.value}: there is no such argument; write --org SLUG or --app NAME after --`);
    if (token.kind !== "option") continue;
    const { name, rawName, value } = token;
    const option = Object.hasOwn(options, name) ? options[name as keyof typeof options] : undefined;
    if (option === undefined) {
      const meant = didYouMean(name, Object.keys(options));
      wrong(
        `${rawName}: there is no such option; ${
          meant === undefined
            ? `there are ${Object.keys(options)
                .map((one) => `--${one}`)
                .join(", ")}`
            : `did you mean --${meant}?`
        }`,
      );
    } else if (option.type === "string" && (value === undefined || value === "")) wrong(`${rawName} needs a value`);
    else if (option.type === "boolean" && value !== undefined) wrong(`${rawName} takes no value`);
  }
  const { org, app, stack, snapshots } = values;
  const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  return {
    org: text(org),
    app: Array.isArray(app) ? app.filter((name) => typeof name === "string") : undefined,
    stack: text(stack),
    snapshots: snapshots === true,
  };
}
