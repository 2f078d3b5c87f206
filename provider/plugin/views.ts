// Reports the views of a resource to the engine, which shows them below the resource and keeps them in its state.
import { promisify } from "node:util";
import grpc from "@grpc/grpc-js";
import type * as rpc from "@pulumi/pulumi/proto/provider_pb.js";
import statusGrpc from "@pulumi/pulumi/proto/resource_status_grpc_pb.js";
import type { ResourceStatusClient } from "@pulumi/pulumi/proto/resource_status_grpc_pb.js";
import proto from "@pulumi/pulumi/proto/resource_status_pb.js";
import type * as status from "@pulumi/pulumi/proto/resource_status_pb.js";
import { printable } from "../../api/printable.ts";
import type { Resource, Values } from "../core/resource.ts";
import type { View, Views, ViewStep } from "../core/views.ts";
import { decode, encode, holdsSecretAt, withSecrets, type Marks } from "./marshal.ts";

/** A request of the engine that takes views. */
export interface TakesViews {
  getUrn(): string;
  getResourceStatusAddress(): string;
  getResourceStatusToken(): string;
  getOldViewsList?(): readonly rpc.View[];
}

/** What the views of a request depend on. */
export interface ViewsOf {
  readonly resource: Resource;
  /** Marks of the values that views repeat. */
  readonly marks: Marks | undefined;
  /** Shows a message beside a resource. */
  readonly status: (urn: string, message: string) => void;
  /** Words an error for the user. */
  readonly worded: (message: string) => string;
  readonly kind: "change" | "refresh" | "import or get";
  /** Whether the state is to keep them. */
  readonly isKept: boolean;
}

const ops = {
  create: proto.ViewStep.Op.CREATE,
  update: proto.ViewStep.Op.UPDATE,
  delete: proto.ViewStep.Op.DELETE,
  read: proto.ViewStep.Op.READ,
} as const;

/** The engine's server for views. */
export class ViewServer {
  #client: ResourceStatusClient | undefined;
  #address: string | undefined;
  /** The resources that the program of this run declares. */
  readonly #declared = new Set<string>();
  /** The views that this run has reported, and whether each was there or gone afterwards. */
  readonly #reported = new Map<string, "there" | "gone">();

  /** Begins a run. */
  begin(): void {
    this.#declared.clear();
    this.#reported.clear();
  }

  /** Notes that the program declares a resource. */
  declare(urn: string): void {
    this.#declared.add(urn);
  }

  /** Whether the program of this run declares a resource. */
  isDeclared(urn: string): boolean {
    return this.#declared.has(urn);
  }

  /** The views of a request; undefined with an engine that has none, and where there are none to keep or to remove. */
  of(request: TakesViews, { resource, marks, status, worded, kind, isKept }: ViewsOf): Views | undefined {
    const [address, token, urn] = [
      request.getResourceStatusAddress(),
      request.getResourceStatusToken(),
      request.getUrn(),
    ];
    const known = request.getOldViewsList?.() ?? [];
    if (address === "" || token === "" || (!isKept && known.length === 0)) return undefined;
    // Two fleets of a stack may have Machines of the same names, in Apps of two organizations.
    const prefix = `${urn.split("::").slice(3).join("::")}/`;
    const old = known.flatMap((view): View[] => {
      const name = view.getName();
      if (!name.startsWith(prefix)) return [];
      const { values: inputs } = decode(view.getInputs());
      const { values: outputs } = decode(view.getOutputs());
      return [{ type: nameOf(view.getType()), name: name.slice(prefix.length), inputs, outputs }];
    });
    const repeated = Object.entries(resource.derivedFrom)
      .filter(([, paths]) => [paths ?? []].flat().some((path) => holdsSecretAt(marks, path.split("."))))
      .map(([name]) => name);
    const secret = withSecrets(undefined, repeated);
    const encoded = (values: Values) => encode(values, () => [], secret);
    const stateOf = ({ type, name, inputs, outputs }: View): status.ViewStepState =>
      new proto.ViewStepState()
        .setType(tokenOf(type))
        .setName(prefix + name)
        .setInputs(encoded(inputs))
        .setOutputs(encoded(outputs));
    const stepOf = ({ op, old: before, new: after, changes, error }: ViewStep): status.ViewStep => {
      const view = after ?? before;
      const step = new proto.ViewStep().setOp(ops[op]);
      if (view) step.setType(tokenOf(view.type)).setName(prefix + view.name);
      if (before) step.setOld(stateOf(before));
      if (after) step.setNew(stateOf(after));
      if (changes) step.setDiffsList([...changes]);
      if (error === undefined) return step;
      // What exists is kept in the state although its step failed.
      const { OK, PARTIAL_FAILURE } = proto.ViewStep.Status;
      return step.setError(printable(worded(error))).setStatus(after ? PARTIAL_FAILURE : OK);
    };
    const gone = old.map((view): ViewStep => ({ op: "delete", old: view }));
    const report = async (steps: readonly ViewStep[]): Promise<void> => {
      const first = kind === "refresh" ? steps : steps.filter((step) => this.#isFirst(urn, step));
      if (first.length === 0) return;
      const client = this.#at(address);
      const message = new proto.PublishViewStepsRequest().setToken(token).setStepsList(first.map(stepOf));
      await promisify<status.PublishViewStepsRequest, unknown>(client.publishViewSteps.bind(client))(message);
    };
    return {
      ...{ isKept, old },
      status: (view, message) => status(urnOf(urn, view.type, prefix + view.name), message),
      publish: async (found) => {
        // An import and a get send the same request, and the state keeps what a program gets without its views.
        if (kind === "import or get" && !this.isDeclared(urn)) return;
        await report(isKept ? found : gone);
      },
      remove: () => report(gone),
    };
  }

  /**
   * Whether a view is reported for the first time in this run, or was reported as gone. The engine repeats a request after an
   * error hook, and updates what it has just imported; a second step for a view would be a second resource in the state.
   */
  #isFirst(owner: string, { op, old, new: after, error }: ViewStep): boolean {
    const { type, name } = after ?? old ?? { type: "", name: "" };
    const key = JSON.stringify([owner, type, name]);
    const before = this.#reported.get(key);
    if (before === "there" || (before === "gone" && op !== "create")) return false;
    // A failed deletion may be repeated.
    if (op !== "delete") this.#reported.set(key, "there");
    else if (error === undefined) this.#reported.set(key, "gone");
    return true;
  }

  #at(address: string): ResourceStatusClient {
    if (this.#client && this.#address === address) return this.#client;
    this.#client?.close();
    const unlimited = { "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 };
    this.#client = new statusGrpc.ResourceStatusClient(address, grpc.credentials.createInsecure(), unlimited);
    this.#address = address;
    return this.#client;
  }
}

const tokenOf = (type: string): string => `machines:index:${type}`;
const nameOf = (token: string): string => token.slice(token.lastIndexOf(":") + 1);

/** The URN that the engine gives a view. */
function urnOf(owner: string, type: string, name: string): string {
  const [stack = "", project = "", types = ""] = owner.split("::");
  return [stack, project, `${types}$${tokenOf(type)}`, name].join("::");
}
