// One resource as the engine drives it: requests from property values, answers checked as in the engine.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import type { DiffResponse } from "@pulumi/pulumi/proto/provider_pb.js";
import type { Client } from "./plugin.ts";
import { fromStruct, toStruct, type Properties } from "./properties.ts";

/** The kind of a property's change. */
export type DiffKind = "add" | "add-replace" | "delete" | "delete-replace" | "update" | "update-replace";

/** The answer of a diff. */
export interface Differences {
  readonly changes: boolean;
  readonly diffs: readonly string[];
  readonly replaces: readonly string[];
  readonly deleteBeforeReplace: boolean;
  readonly detailed: Readonly<Record<string, DiffKind>>;
}

interface Name {
  readonly mode: "propose" | "enforce" | "disable";
  readonly name?: string;
}

/** A resource of a program. Values are passed with their marks. */
export interface Driver {
  readonly urn: string;
  check(
    news: Properties,
    options?: { olds?: Properties; oldOutputs?: Properties; seed?: string; autonaming?: Name; preview?: boolean },
  ): Promise<{ inputs: Properties; failures: { property: string; reason: string }[] }>;
  /** Like check, for inputs that must be valid. */
  checked(news: Properties, olds?: Properties): Promise<Properties>;
  diff(args: {
    id?: string;
    oldInputs?: Properties;
    state: Properties;
    inputs: Properties;
    ignoreChanges?: readonly string[];
  }): Promise<Differences>;
  create(inputs: Properties, options?: { timeout?: number }): Promise<{ id: string; state: Properties }>;
  previewCreate(inputs: Properties): Promise<{ id: string; state: Properties }>;
  /** An import passes only the id, a get empty properties, a refresh state and inputs. `undefined`: the object is missing. */
  read(
    id: string,
    known?: { inputs?: Properties; state?: Properties },
  ): Promise<{ id: string; state: Properties; inputs: Properties | undefined } | undefined>;
  update(args: Change): Promise<Properties>;
  previewUpdate(args: Change): Promise<Properties>;
  delete(args: { id: string; state: Properties; inputs?: Properties; timeout?: number }): Promise<void>;
}

interface Change {
  readonly id: string;
  readonly oldInputs?: Properties;
  readonly state: Properties;
  readonly inputs: Properties;
  readonly timeout?: number;
}

/** The URN of a resource. */
export const urnOf = (type: string, name: string): string =>
  `urn:pulumi:dev::project::${type.includes(":") ? type : `machines:index:${type}`}::${name}`;

/** Drives the resource with a URN. */
export function drive(client: Client, urn: string): Driver {
  const name = urn.slice(urn.lastIndexOf("::") + 2);
  const type = urn.split("::")[2]?.split("$").at(-1) ?? "";
  /** The common fields of every request about a resource. */
  const about = <M extends { setUrn(urn: string): M; setName(name: string): M; setType(type: string): M }>(
    message: M,
  ) => message.setUrn(urn).setName(name).setType(type);

  const check: Driver["check"] = async (news, { olds = {}, oldOutputs, seed, autonaming, preview = true } = {}) => {
    const request = about(new proto.CheckRequest()).setOlds(toStruct(olds)).setNews(toStruct(news));
    if (oldOutputs) request.setOldOutputs(toStruct(oldOutputs));
    if (seed !== undefined) request.setRandomseed(Buffer.from(seed));
    if (autonaming) {
      const { AutonamingOptions } = proto.CheckRequest;
      const modes = AutonamingOptions.Mode;
      const mode = { propose: modes.PROPOSE, enforce: modes.ENFORCE, disable: modes.DISABLE }[autonaming.mode];
      request.setAutonaming(new AutonamingOptions().setMode(mode).setProposedName(autonaming.name ?? ""));
    }
    const response = await client.check(request);
    return {
      inputs: fromStruct(present(response.getInputs()), { unknowns: preview }),
      failures: response
        .getFailuresList()
        .map((failure) => ({ property: failure.getProperty(), reason: failure.getReason() })),
    };
  };

  const created = async (inputs: Properties, preview: boolean, timeout = 0) => {
    const request = about(new proto.CreateRequest()).setProperties(toStruct(inputs));
    const response = await client.create(request.setPreview(preview).setTimeout(timeout));
    if (!preview && response.getId() === "") throw new Error(`plugin returned empty resource.ID from create '${urn}'`);
    return { id: response.getId(), state: fromStruct(present(response.getProperties()), { unknowns: preview }) };
  };

  const updated = async ({ id, oldInputs = {}, state, inputs, timeout = 0 }: Change, preview: boolean) => {
    const request = about(new proto.UpdateRequest()).setId(id).setOlds(toStruct(state)).setNews(toStruct(inputs));
    request.setOldInputs(toStruct(oldInputs)).setTimeout(timeout).setPreview(preview);
    const response = await client.update(request);
    return fromStruct(present(response.getProperties()), { unknowns: preview });
  };

  return {
    urn,
    check,
    async checked(news, olds = {}) {
      const { inputs, failures } = await check(news, { olds });
      if (failures.length > 0) throw new Error(failures.map(({ reason }) => reason).join("\n"));
      return inputs;
    },
    async diff({ id = "id", oldInputs = {}, state, inputs, ignoreChanges = [] }) {
      const request = about(new proto.DiffRequest()).setId(id).setOlds(toStruct(state)).setNews(toStruct(inputs));
      request.setOldInputs(toStruct(oldInputs)).setIgnorechangesList([...ignoreChanges]);
      return differences(await client.diff(request));
    },
    create: (inputs, { timeout } = {}) => created(inputs, false, timeout),
    previewCreate: (inputs) => created(inputs, true),
    async read(id, { inputs, state } = {}) {
      const request = about(new proto.ReadRequest()).setId(id);
      if (inputs) request.setInputs(toStruct(inputs));
      if (state) request.setProperties(toStruct(state));
      const response = await client.read(request);
      const [properties, found] = [response.getProperties(), response.getInputs()];
      if (response.getId() === "" || !properties) return undefined;
      return {
        id: response.getId(),
        state: fromStruct(properties, { unknowns: false }),
        inputs: found && fromStruct(found, { unknowns: false }),
      };
    },
    update: (change) => updated(change, false),
    previewUpdate: (change) => updated(change, true),
    async delete({ id, state, inputs = {}, timeout = 0 }) {
      const request = about(new proto.DeleteRequest()).setId(id).setProperties(toStruct(state));
      await client.delete(request.setOldInputs(toStruct(inputs)).setTimeout(timeout));
    },
  };
}

function present<T>(message: T | undefined): T {
  if (message === undefined) throw new Error("the answer lacks its properties");
  return message;
}

const kinds: readonly DiffKind[] = ["add", "add-replace", "delete", "delete-replace", "update", "update-replace"];

/** Parses a diff and checks the rules for every diff. */
export function differences(response: DiffResponse): Differences {
  const { DIFF_SOME, DIFF_NONE } = proto.DiffResponse.DiffChanges;
  const detailed: Record<string, DiffKind> = {};
  response.getDetaileddiffMap().forEach((detail: InstanceType<typeof proto.PropertyDiff>, path: string) => {
    detailed[path] = kinds[detail.getKind()] ?? "update";
    if (!detail.getInputdiff()) throw new Error(`the difference at ${path} is not one of inputs`);
  });
  const found: Differences = {
    changes: response.getChanges() === DIFF_SOME,
    diffs: response.getDiffsList(),
    replaces: response.getReplacesList(),
    deleteBeforeReplace: response.getDeletebeforereplace(),
    detailed,
  };
  const tops = (ask: (kind: DiffKind) => boolean): string =>
    [...new Set(Object.keys(detailed).filter((path) => ask(detailed[path] ?? "update")))]
      .map((path) => /^[^.[]+/.exec(path)?.[0] ?? path)
      .filter((top, i, all) => all.indexOf(top) === i)
      .sort()
      .join();
  const broken = [
    ...(![DIFF_SOME, DIFF_NONE].includes(response.getChanges()) ? ["says neither some nor none"] : []),
    ...(!response.getHasdetaileddiff() ? ["has no detailed diff"] : []),
    ...([...found.diffs].sort().join() !== tops(() => true) ? ["diffs are not the details' properties"] : []),
    ...([...found.replaces].sort().join() !== tops((kind) => kind.endsWith("-replace"))
      ? ["replaces are not the details' properties"]
      : []),
    ...(found.diffs.length > 0 && !found.changes ? ["differences without changes"] : []),
  ];
  if (broken.length > 0) throw new Error(`a diff that ${broken.join(", ")}: ${JSON.stringify(response.toObject())}`);
  return found;
}
