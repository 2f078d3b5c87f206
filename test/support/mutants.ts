// Breaks the definition of a resource type on purpose, in this process: each mutant does nothing, or half, of what one of
// its functions does. `npm run test:mutants` runs suites with each mutant, and one of them must fail.
import { contract } from "../../api/index.ts";
import type { Field } from "../../api/schema.ts";
import type { Operation } from "../../api/operation.ts";
import type { Api } from "../../provider/client/api.ts";
import type { Listing } from "../../provider/core/listing.ts";
import { kindOf, type Resource, type Values } from "../../provider/core/resource.ts";
import { equal, same } from "../../provider/core/values.ts";
import { resources, type ResourceName } from "../../provider/registry.ts";
import type { Verbs } from "./verbs.ts";

/** The functions of a type that are broken. */
export const verbs = ["create", "read", "update", "delete", "diff", "list"] as const;
type Verb = (typeof verbs)[number];

/** One way to break a type. */
export interface Mutant {
  /** `Volume.delete.nothing` */
  readonly name: string;
  readonly type: ResourceName;
  readonly verb: Verb;
  /** The broken members of the definition; `acts` is called whenever the mutant does something else. */
  readonly members?: (resource: Resource, acts: () => void) => Partial<Resource>;
  /** The broken diff, which belongs to no definition. */
  readonly diff?: (diff: Verbs["diff"], acts: () => void) => Verbs["diff"];
}

type Way = Pick<Mutant, "members" | "diff">;
type Ways = Readonly<Record<string, Way>>;

class Stopped extends Error {}

/** Whether a request has an effect: a write, or the use of a key, which changes nothing on the service. */
const hasEffect = ({ id, repeat }: Operation): boolean => repeat !== "read" || /\.(encrypt|sign)$/.test(id);

/** The service, until the first request that must not be sent. No request is sent after it. */
function stopping(api: Api, mayPass: (row: Operation) => boolean, acts: () => void): Api {
  let isStopped = false;
  const rows: Readonly<Record<string, Readonly<Record<string, Operation>>>> = contract;
  const wrap = (target: Api): Api =>
    new Proxy(target, {
      get(from, group: string) {
        if (group === "within") return (deadline: Api["deadline"]) => wrap(from.within(deadline));
        const methods: unknown = Reflect.get(from, group, from);
        const known = rows[group];
        if (!known) return methods;
        const send = (row: Operation) => (args: unknown) => {
          if (isStopped || !mayPass(row)) {
            isStopped = true;
            acts();
            return Promise.reject(new Stopped(`${row.id} is not sent`));
          }
          return (methods as Record<string, (args: unknown) => unknown>)[row.id.split(".")[1] ?? ""]?.(args);
        };
        return Object.fromEntries(Object.entries(known).map(([name, row]) => [name, send(row)]));
      },
    });
  return wrap(api);
}

/** Does only the requests that may pass, and answers as if it had done all of them. */
function stopped<Args extends { readonly api: Api }, Answer>(
  work: (args: Args) => Promise<Answer>,
  mayPass: () => (row: Operation) => boolean,
  answer: (args: Args) => Answer,
  acts: () => void,
): (args: Args) => Promise<Answer> {
  return async (args) => {
    let hasStopped = false;
    const api = stopping(args.api, mayPass(), () => {
      hasStopped = true;
      acts();
    });
    const real = await work({ ...args, api }).catch((error: unknown) => {
      if (!hasStopped) throw error as Error;
    });
    return hasStopped ? answer(args) : (real as Answer);
  };
}

const nothing = () => (row: Operation) => !hasEffect(row);
const noRequest = () => () => false;

/** The first request with an effect, and no second one. */
const half = () => {
  let effects = 0;
  return (row: Operation) => !hasEffect(row) || ++effects === 1;
};

/** The first request with an effect, and no request after it. */
const unwaited = () => {
  let isDone = false;
  return (row: Operation) => !isDone && ((isDone = hasEffect(row)), true);
};

/** Made-up outputs. */
const madeUp = (fields: Readonly<Record<string, Field>>): Values =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { shape, optional }]): [string, unknown][] => {
      if (optional) return [];
      if (shape.kind === "array") return [[name, []]];
      if (shape.kind !== "leaf") return [[name, {}]];
      return [[name, shape.type === "string" ? "made-up" : shape.type === "boolean" ? false : 1]];
    }),
  );

const without = (values: Values, name: string): Values =>
  Object.fromEntries(Object.entries(values).filter(([other]) => other !== name));

/** The inputs that are sent. */
const sentInputs = ({ inputFields }: Resource): (readonly [string, Field])[] =>
  Object.entries(inputFields).filter(([, field]) => kindOf(field) !== "behaviour");

/** The values with another one for a name; `acts` is called when it is read. */
const replaced = (values: Values, name: string, value: unknown, acts: () => void): Values =>
  Object.defineProperty({ ...values }, name, {
    enumerable: true,
    get() {
      acts();
      return value;
    },
  });

const each = <T>(items: readonly T[], way: (item: T) => readonly [string, Way]): Ways =>
  Object.fromEntries(items.map(way));

const creates = (type: Resource): Ways => ({
  nothing: {
    members: ({ create, outputFields }, acts) => ({
      create: stopped(create, noRequest, ({ inputs }) => ({ ...madeUp(outputFields), ...inputs }), acts),
    }),
  },
  ...each(sentInputs(type), ([name, field]) => [
    `without ${name}`,
    {
      members: ({ create }, acts) => ({
        create: (args) => {
          const isSent = args.inputs[name] !== undefined && !same(field, args.inputs[name], field.default);
          return create(isSent ? { ...args, inputs: replaced(args.inputs, name, undefined, acts) } : args);
        },
      }),
    },
  ]),
});

const reads = (type: Resource): Ways => ({
  gone: {
    members: (_, acts) => ({
      read: () => {
        acts();
        return Promise.resolve(undefined);
      },
    }),
  },
  old: {
    members: ({ read }, acts) => ({
      read: (args) => {
        if (args.state === undefined) return read(args);
        acts();
        return Promise.resolve({ ...args.state, ...args.id });
      },
    }),
  },
  ...each(sentInputs(type), ([name]) => [
    `without ${name}`,
    {
      members: ({ read }, acts) => ({
        read: async (args) => {
          const live = await read(args);
          if (live?.[name] === undefined || live[name] === null) return live;
          // Without an answer of the service, the state stays.
          if (!equal(live[name], args.state?.[name])) acts();
          return without(live, name);
        },
      }),
    },
  ]),
});

const updates = (type: Resource): Ways => ({
  ...Object.fromEntries(
    Object.entries({ nothing, half }).map(([name, mayPass]) => [
      name,
      {
        members: ({ update }, acts) => ({
          update: stopped(update, mayPass, ({ old, inputs }) => ({ ...old, ...inputs }), acts),
        }),
      } satisfies Way,
    ]),
  ),
  ...each(
    sentInputs(type).filter(([name]) => !type.replaceOn.includes(name)),
    ([name, field]) => [
      `without ${name}`,
      {
        members: ({ update }, acts) => ({
          update: async (args) => {
            if (same(field, args.inputs[name], args.old[name])) return update(args);
            const inputs = replaced(args.inputs, name, args.old[name], acts);
            return { ...(await update({ ...args, inputs })), [name]: args.inputs[name] };
          },
        }),
      },
    ],
  ),
});

const deletes: Ways = Object.fromEntries(
  Object.entries({ nothing, half, unwaited }).map(([name, mayPass]) => [
    name,
    { members: ({ delete: remove }, acts) => ({ delete: stopped(remove, mayPass, () => undefined, acts) }) },
  ]),
);

const diffs = (type: Resource): Ways => ({
  nothing: {
    diff: (diff, acts) => async (id, state, inputs) => {
      if ((await diff(id, state, inputs)) !== "same") acts();
      return "same";
    },
  },
  // A write-only input is not stored, so no diff compares it.
  ...each(
    Object.keys(type.inputFields).filter((name) => !type.inputFields[name]?.meta.writeOnly),
    (name) => [
      `without ${name}`,
      {
        diff: (diff, acts) => (id, state, inputs) => {
          if (!equal(inputs[name], state[name])) acts();
          return diff(id, state, { ...without(inputs, name), ...(name in state ? { [name]: state[name] } : {}) });
        },
      },
    ],
  ),
  ...each(type.replaceOn, (path) => [
    `never replaces on ${path}`,
    {
      members: ({ replaceOn }, acts) => {
        acts();
        return { replaceOn: replaceOn.filter((other) => other !== path) };
      },
    },
  ]),
});

const lists: Ways = each([0, 1], (count) => [
  count === 0 ? "nothing" : "only the first",
  {
    members: ({ list }, acts) => {
      const objects: Listing["objects"] = async (...args) => {
        const all = (await list?.objects(...args)) ?? [];
        if (all.length > count) acts();
        return all.slice(0, count);
      };
      return list === undefined ? {} : { list: { ...list, objects } };
    },
  },
]);

const waysOf: Readonly<Record<Verb, (type: Resource) => Ways>> = {
  create: creates,
  read: reads,
  update: updates,
  delete: () => deletes,
  diff: diffs,
  list: ({ list }) => (list === undefined ? {} : lists),
};

/** Mutants that do what the type does, as far as anyone can see. */
export const equivalents: Readonly<Record<string, string>> = {
  "App.delete.unwaited": "the service hides an App from the moment of its deletion",
  "CustomCertificate.create.without privateKeyVersion": "it is not sent",
  "CustomCertificate.update.without privateKeyVersion": "it is not sent",
  "CustomCertificate.diff.without privateKey": "a key changes together with its chain",
  "Fleet.diff.without adopt": "it matters only for the creation",
} satisfies Readonly<Partial<Record<`${ResourceName}.${Verb}.${string}`, string>>>;

/** Every mutant of a type. */
export function mutantsOf(type: ResourceName): Mutant[] {
  const resource = resources[type];
  if (!resource) throw new Error(`no resource type ${type}`);
  return verbs.flatMap((verb) =>
    Object.entries(waysOf[verb](resource)).map(([way, how]) => ({
      name: `${type}.${verb}.${way}`,
      type,
      verb,
      ...how,
    })),
  );
}

/** The mutant of a name. */
export function mutantOf(name: string): Mutant {
  const [type = ""] = name.split(".");
  const found = mutantsOf(type as ResourceName).find((mutant) => mutant.name === name);
  if (!found) throw new Error(`there is no mutant ${name}`);
  return found;
}

let diffMutant:
  | { readonly type: string; readonly diff: NonNullable<Mutant["diff"]>; readonly acts: () => void }
  | undefined;

/** A binding of a type, with the broken diff while there is one. */
export function withMutant<V extends Verbs>(type: string, bound: V): V {
  if (diffMutant?.type !== type) return bound;
  return { ...bound, diff: diffMutant.diff((...args) => bound.diff(...args), diffMutant.acts) };
}

/** Breaks a type, until `end`, which says whether the mutant has done anything else than the type. */
export function begin({ type, members, diff }: Mutant): { end(): boolean } {
  const resource = resources[type];
  if (!resource) throw new Error(`no resource type ${type}`);
  let hasActed = false;
  const acts = () => void (hasActed = true);
  const before = { ...resource };
  Object.assign(resource, members?.(before, acts));
  diffMutant = diff && { type, diff, acts };
  return {
    end() {
      Object.assign(resource, before);
      diffMutant = undefined;
      return hasActed;
    },
  };
}

/** What a suite found about a mutant. */
export interface Verdict {
  readonly mutant: string;
  /** Whether it did anything else than the type in the suite. */
  readonly hasActed: boolean;
  /** What failed; undefined if nothing did. */
  readonly foundBy?: string | undefined;
}
