// Components of programs in any language: the engine constructs them and calls their methods. The plugin registers them
// with the engine's monitor itself; Pulumi's runtime for programs would take its time and memory in every run.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import type * as rpc from "@pulumi/pulumi/proto/provider_pb.js";
import { z } from "zod";
import { didYouMean } from "../../api/didYouMean.ts";
import { fieldOf, type Field } from "../../api/schema.ts";
import { MachinesError } from "../client/errors.ts";
import { problemsOf } from "../core/check.ts";
import type { Component, Constructing, Derived, Method } from "../core/component.ts";
import type { Values } from "../core/resource.ts";
import { hasUnknown, located, UNKNOWN } from "../core/values.ts";
import { components } from "../registry.ts";
import { decode, dependenciesIn, encode, holdsSecret, withSecrets, type Marks } from "./marshal.ts";
import type { Held, Monitor } from "./monitor.ts";

/** Loads the monitor's messages with the first component. */
async function inMonitor<T>(request: { getMonitorendpoint(): string }, work: (monitor: Monitor) => Promise<T>) {
  const { withMonitor } = await import("./monitor.ts");
  return withMonitor(request.getMonitorendpoint(), work);
}

/** Registers a component and computes its outputs. */
export async function constructComponent(
  request: rpc.ConstructRequest,
  constructing: (urn: string) => Constructing,
): Promise<rpc.ConstructResponse> {
  const component = componentOf(request.getType());
  const { values, marks } = decode(request.getInputs());
  const inputs = inputsOf(component.inputFields, values);
  return inMonitor(request, async (monitor) => {
    const urn = await monitor.register(request);
    const derived = Object.entries(await component.construct(inputs, constructing(urn)));
    const response = new proto.ConstructResponse();
    for (const [name, output] of derived) {
      const dependencies = new proto.ConstructResponse.PropertyDependencies();
      dependencies.setUrnsList(dependenciesOf(output, request, marks));
      response.getStatedependenciesMap().set(name, dependencies);
    }
    const outputs = Object.fromEntries(derived.map(([name, { value }]) => [name, value]));
    const state = encodedOutputs(
      component.outputFields,
      outputs,
      derived.filter(isSecret(marks)).map(([name]) => name),
    );
    await monitor.registerOutputs(urn, state);
    response.setUrn(urn);
    response.setState(state);
    return response;
  });
}

/** Calls a method of a component. Its result is unknown while a value is unknown that it needs. */
export async function callMethod(request: rpc.CallRequest): Promise<rpc.CallResponse> {
  const method = methodOf(request.getTok());
  const { values, marks } = decode(request.getArgs());
  const given = inputsOf({ [method.argument]: resourceList() }, values)[method.argument];
  const list: readonly unknown[] = Array.isArray(given) ? given : [];
  const urns = list.map((item, at) => urnOf(method, item, at, marks?.within.get(method.argument)?.within.get(at)));
  const own = marks?.within.get("__self__")?.urn;
  if (own === undefined) throw new MachinesError("invalid-input", `${request.getTok()} is a method of a component`);
  const known = urns.filter((urn) => urn !== undefined);
  return inMonitor(request, async (monitor) => {
    const [component, ...others] = await Promise.all([own, ...known].map((urn) => monitor.resource(urn)));
    const self = readAt(component, undefined);
    const passed = others.map((held, at) => {
      const type = typeIn(known[at] ?? "");
      return { type, ...readAt(held, { names: method.takes[type] ?? [], preview: request.getDryrun() }) };
    });
    const isUnknown =
      given === UNKNOWN || known.length < urns.length || hasUnknown([self, ...passed].map((one) => one.values));
    const stack = `${request.getProject()}/${request.getStack()}`;
    const name = own.split("::").slice(3).join("::");
    const result = isUnknown ? UNKNOWN : method.call({ name, self: self.values, passed, stack });
    const isHidden = [self, ...passed].some((one) => one.isSecret);
    const response = new proto.CallResponse();
    response.setReturn(encodedOutputs({}, { [method.result]: result }, isHidden ? [method.result] : []));
    const dependencies = new proto.CallResponse.ReturnDependencies();
    dependencies.setUrnsList([...new Set([own, ...known])]);
    response.getReturndependenciesMap().set(method.result, dependencies);
    return response;
  });
}

/** Names of the types of resources that a method takes, as a message says them. */
const kindsOf = ({ takes }: Method): string => Object.keys(takes).join(" or a ");

/** The URN of a resource in the argument of a method; undefined if the value is not known yet. */
function urnOf(method: Method, item: unknown, at: number, marks: Marks | undefined): string | undefined {
  const urn = marks?.urn;
  if (urn === undefined && item === UNKNOWN) return undefined;
  const type = urn === undefined ? typeof item : typeIn(urn);
  if (urn !== undefined && Object.hasOwn(method.takes, type)) return urn;
  throw new MachinesError(
    "invalid-input",
    located([method.argument, at], `got a ${type}; it must be a ${kindsOf(method)} itself, not one of its properties`),
  );
}

/** The name of the type of a resource. */
function typeIn(urn: string): string {
  const token = urn.split("::")[2]?.split("$").at(-1) ?? "";
  return /^machines:index:(\w+)$/.exec(token)?.[1] ?? token;
}

/**
 * Outputs of a resource that a method reads; all of them without names. Those that a preview does not have are unknown, except those with
 * `?` after their names: a resource may have none.
 */
function readAt(
  held: Held | undefined,
  wanted: { readonly names: readonly string[]; readonly preview: boolean } | undefined,
) {
  const { values, marks } = decode(held?.outputs);
  const all = wanted?.names ?? Object.keys(values);
  const names = all.map((name) => name.replace(/\?$/, ""));
  const mayLack = (name: string): boolean => !wanted?.preview || all.includes(`${name}?`);
  const valueOf = (name: string): unknown =>
    name === "id" ? held?.id || UNKNOWN : (values[name] ?? (mayLack(name) ? undefined : UNKNOWN));
  const read: Values = Object.fromEntries(names.map((name) => [name, valueOf(name)]));
  return { values: read, isSecret: names.some((name) => holdsSecret(marks?.within.get(name))) };
}

let anyList: Field | undefined;
const resourceList = (): Field => (anyList ??= fieldOf(z.array(z.unknown())));

/** Checked inputs. @throws MachinesError `invalid-input` with all problems */
function inputsOf(fields: Readonly<Record<string, Field>>, values: Values): Values {
  const { inputs, problems } = problemsOf(fields, values);
  if (problems.length > 0)
    throw new MachinesError("invalid-input", problems.map(({ path, message }) => located(path, message)).join("; "));
  // A value of any type is given even if it is null: the output of another stack that does not exist.
  const missing = Object.entries(fields).filter(
    ([name, { shape }]) => values[name] === null && shape.kind === "leaf" && shape.type === "any",
  );
  return { ...inputs, ...Object.fromEntries(missing.map(([name]) => [name, null])) };
}

const isSecret =
  (marks: Marks | undefined) =>
  ([, { secretLike }]: [string, Derived]): boolean =>
    secretLike.some((input) => holdsSecret(marks?.within.get(input)));

/** URNs of the resources on which an output depends. */
function dependenciesOf(
  { secretLike, decidedBy = [] }: Derived,
  request: rpc.ConstructRequest,
  marks: Marks | undefined,
) {
  const urns = [...secretLike, ...decidedBy].flatMap((input) => [
    ...(request.getInputdependenciesMap().get(input)?.getUrnsList() ?? []),
    ...dependenciesIn(marks?.within.get(input)),
  ]);
  return [...new Set(urns)];
}

const encodedOutputs = (fields: Readonly<Record<string, Field>>, values: Values, secrets: readonly string[]) =>
  encode(values, (name) => (fields[name] ? [fields[name]] : []), withSecrets(undefined, secrets));

/** The component of a token. */
function componentOf(token: string): Component {
  const name = /^machines:index:(\w+)$/.exec(token)?.[1] ?? "";
  const found = Object.hasOwn(components, name) ? components[name] : undefined;
  return found ?? refuseUnknown("component", token, name, Object.keys(components));
}

/** The method of a token, `machines:index:Release/runBy`. */
function methodOf(token: string): Method {
  const [type = "", name = ""] = token.split("/");
  const { methods } = componentOf(type);
  const found = Object.hasOwn(methods, name) ? methods[name] : undefined;
  return found ?? refuseUnknown("method", token, name, Object.keys(methods));
}

function refuseUnknown(kind: string, token: string, name: string, known: readonly string[]): never {
  const meant = didYouMean(name, known);
  throw new MachinesError(
    "invalid-input",
    `there is no ${kind} ${JSON.stringify(token)} in this version${meant === undefined ? "" : `; did you mean ${meant}?`}`,
  );
}
