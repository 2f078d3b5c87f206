// Repeats recorded calls: converts the engine's JSON to messages of the plugin protocol, and back.
import type { Struct } from "google-protobuf/google/protobuf/struct_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import type * as rpc from "@pulumi/pulumi/proto/provider_pb.js";
import { isObject } from "../../api/schema.ts";
import type { Client } from "../support/plugin.ts";
import { toStruct } from "../support/properties.ts";
import type { Call } from "./records.ts";

type Json = Readonly<Record<string, unknown>>;

const jsonOf = (message: Struct | undefined): unknown => message?.toJavaScript();

const configure = (client: Client, request: Json) =>
  client.configure(filled(new proto.ConfigureRequest(), request)).then(() => undefined);

const checked = (response: rpc.CheckResponse): Json => ({
  inputs: jsonOf(response.getInputs()),
  failures: response.getFailuresList().map((failure) => failure.toObject()),
});

function compared(response: rpc.DiffResponse): Json {
  const { DiffChanges } = proto.DiffResponse;
  const { Kind } = proto.PropertyDiff;
  const named = (values: object, value: number): string | undefined =>
    Object.entries(values).find(([, other]) => other === value)?.[0];
  const details: [string, Json][] = [];
  response.getDetaileddiffMap().forEach((detail: rpc.PropertyDiff, path: string) => {
    // The engine omits zero values, and so the first kind.
    const kind = detail.getKind() === Kind.ADD ? undefined : named(Kind, detail.getKind());
    details.push([path, { kind, inputDiff: detail.getInputdiff() }]);
  });
  return {
    changes: named(DiffChanges, response.getChanges()),
    diffs: response.getDiffsList(),
    replaces: response.getReplacesList(),
    stables: response.getStablesList(),
    deleteBeforeReplace: response.getDeletebeforereplace(),
    detailedDiff: Object.fromEntries(details),
    hasDetailedDiff: response.getHasdetaileddiff(),
  };
}

/** The calls that change nothing and do not depend on the state at recording time. */
const methods: Readonly<Record<string, (client: Client, request: Json) => Promise<Json>>> = {
  checkConfig: async (client, request) => checked(await client.checkConfig(filled(new proto.CheckRequest(), request))),
  diffConfig: async (client, request) => compared(await client.diffConfig(filled(new proto.DiffRequest(), request))),
  check: async (client, request) => checked(await client.check(filled(new proto.CheckRequest(), request))),
  diff: async (client, request) => compared(await client.diff(filled(new proto.DiffRequest(), request))),
  async create(client, request) {
    const response = await client.create(filled(new proto.CreateRequest(), request));
    return { id: response.getId(), properties: jsonOf(response.getProperties()) };
  },
  async update(client, request) {
    const response = await client.update(filled(new proto.UpdateRequest(), request));
    return { properties: jsonOf(response.getProperties()) };
  },
};

/** Whether a call can be repeated: a create or update only if it was a preview. */
const canBeRepeated = ({ method, request, errors }: Call): boolean =>
  errors === undefined &&
  Object.hasOwn(methods, method) &&
  ((method !== "create" && method !== "update") || request["preview"] === true);

/**
 * Repeats recorded calls and returns one line for every difference in the plugin's answers. `later` names properties that
 * were added since the recording, as `Machine.zone`.
 */
export async function replay(client: Client, calls: readonly Call[], later: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const call of calls) {
    const { method, request, response } = call;
    if (method === "configure") await configure(client, request);
    if (!canBeRepeated(call)) continue;
    const [type = "", name = ""] = String(request["urn"]).split("::").slice(2);
    const about = `${method} of ${type} ${name}`;
    const added = later
      .map((property) => property.split("."))
      .flatMap(([of, one = ""]) => (type.endsWith(`:${of}`) ? [one] : []));
    const isLater = (difference: string): boolean =>
      // A preview returned an id for an object that does not exist; dependent calls must not use it.
      (method === "create" && /^id was ".*" and is nothing$/.test(difference)) ||
      added.some((one) => new RegExp(`^(inputs|properties)\\.${one} was nothing`).test(difference)) ||
      isLeftLater(difference, added);
    try {
      const answer = withoutZeros(await methods[method]?.(client, request));
      const unlike = differences(withoutZeros(response), answer).filter((difference) => !isLater(difference));
      found.push(...unlike.map((difference) => `${about}: ${difference}`));
    } catch (error) {
      found.push(`${about}: ${String(error)}`);
    }
  }
  return found;
}

/** Whether a difference is only that later inputs are noted as omitted. */
function isLeftLater(difference: string, added: readonly string[]): boolean {
  const [, was = "", is] = /^\w+\.__context\.left was (nothing|\[.*\]) and is (\[.*\])$/.exec(difference) ?? [];
  if (is === undefined) return false;
  const before = was === "nothing" ? "[]" : was;
  return JSON.stringify((JSON.parse(is) as string[]).filter((name) => !added.includes(name))) === before;
}

/** Sets a message's fields by their names in JSON. */
function filled<M extends object>(message: M, fields: Json): M {
  for (const [name, value] of Object.entries(fields)) {
    const wanted = [`set${name}`, `set${name}list`].map((setter) => setter.toLowerCase());
    const setter = Object.getOwnPropertyNames(Object.getPrototypeOf(message)).find((own) =>
      wanted.includes(own.toLowerCase()),
    );
    if (setter !== undefined)
      (message as Record<string, (value: unknown) => void>)[setter]?.(isObject(value) ? toStruct(value) : value);
  }
  return message;
}

/** An answer as the engine writes it: top-level fields that are empty or false are omitted. */
function withoutZeros(answer: Json = {}): Json {
  const isZero = (value: unknown): boolean =>
    value === undefined ||
    value === false ||
    value === "" ||
    (Array.isArray(value) && value.length === 0) ||
    (isObject(value) && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(answer).filter(([, value]) => !isZero(value)));
}

/** The paths at which two values differ. */
function differences(before: unknown, now: unknown, path = ""): string[] {
  if (Array.isArray(before) && Array.isArray(now) && before.length === now.length)
    return before.flatMap((item, i) => differences(item, now[i], `${path}[${i}]`));
  if (isObject(before) && isObject(now))
    return [...new Set([...Object.keys(before), ...Object.keys(now)])].flatMap((name) =>
      differences(before[name], now[name], path === "" ? name : `${path}.${name}`),
    );
  const [was, is] = [before, now].map((value) => (value === undefined ? "nothing" : JSON.stringify(value)));
  return was === is ? [] : [`${path} was ${was} and is ${is}`];
}
