// What the engine's requests are about.
import { createHash, randomBytes } from "node:crypto";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import type * as rpc from "@pulumi/pulumi/proto/provider_pb.js";
import { didYouMean } from "../../api/didYouMean.ts";
import { MachinesError } from "../client/errors.ts";
import type { Surroundings } from "../core/check.ts";
import type { MachinesFunction } from "../core/function.ts";
import type { Resource, Values } from "../core/resource.ts";
import { functions, resources } from "../registry.ts";
import { decode } from "./marshal.ts";

/** The resource of a request. */
export function about(request: { getUrn(): string }): { resource: Resource; urn: string; name: string } {
  const urn = request.getUrn();
  const [, , types = "", ...rest] = urn.split("::");
  return { resource: resourceOf(types.slice(types.lastIndexOf("$") + 1)), urn, name: rest.join("::") };
}

/** The resource type of a token. */
export function resourceOf(token: string): Resource {
  const type = /^machines:index:(\w+)$/.exec(token)?.[1] ?? "";
  const resource = Object.hasOwn(resources, type) ? resources[type] : undefined;
  if (!resource) {
    const meant = didYouMean(type, Object.keys(resources));
    throw new MachinesError(
      "invalid-input",
      `there is no resource type ${JSON.stringify(token)} in this version${meant === undefined ? "" : `; did you mean machines:index:${meant}?`}`,
    );
  }
  return resource;
}

/** The function of a request. */
export function functionOf(token: string): MachinesFunction {
  const name = /^machines:index:(\w+)$/.exec(token)?.[1] ?? "";
  const found = Object.hasOwn(functions, name) ? functions[name] : undefined;
  if (found) return found;
  const meant = didYouMean(name, Object.keys(functions));
  throw new MachinesError(
    "invalid-input",
    `there is no function ${JSON.stringify(token)} in this version${meant === undefined ? "" : `; did you mean machines:index:${meant}?`}`,
  );
}

/** The state of an object in a check. Older engines send none, and no engine does for a new or replaced resource. */
export function stateIn(request: rpc.CheckRequest): Values | undefined {
  const { values } = decode(request.getOldOutputs());
  return Object.keys(values).length > 0 ? values : undefined;
}

/** The name that the engine proposes. */
export function proposalOf(request: rpc.CheckRequest): Surroundings["proposal"] {
  const autonaming = request.getAutonaming();
  if (!autonaming) return undefined;
  const { Mode } = proto.CheckRequest.AutonamingOptions;
  const modes = { [Mode.PROPOSE]: "propose", [Mode.ENFORCE]: "enforce", [Mode.DISABLE]: "disable" } as const;
  return { name: autonaming.getProposedName(), mode: modes[autonaming.getMode()] };
}

/** Hexadecimal characters that follow from the engine's seed, so that a plan is executed with the names it showed. */
export function seeded(seed: Uint8Array, urn: string): (characters: number) => string {
  const chance = seed.length > 0 ? seed : randomBytes(32);
  return (characters) => createHash("sha256").update(chance).update(urn).digest("hex").slice(0, characters);
}
