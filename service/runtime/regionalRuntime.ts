// Several runtimes as one: each runs the Machines of its own regions. What one of them does or cannot do now harms no other.
import type { MachineConfig } from "../../api/machineConfig.ts";
import type { SignalName } from "../../api/signals.ts";
import { Refusal } from "../refusal.ts";
import type {
  Command,
  FoundImage,
  LogLine,
  LogQuery,
  Memory,
  Outcome,
  Process,
  Reach,
  Runtime,
  RuntimeFactory,
  RuntimeHost,
  StopRequest,
  Subject,
  TerminalRequest,
  TerminalSession,
  Usage,
} from "./runtime.ts";

/** A runtime for some regions. */
export interface RegionalPart {
  readonly regions: readonly string[];
  readonly runtime: RuntimeFactory;
}

/** Passes what concerns a Machine or a volume to the runtime of its region. */
export class RegionalRuntime implements Runtime {
  readonly name: string;
  readonly reach: Reach;
  readonly #host: RuntimeHost;
  readonly #parts: readonly Runtime[];
  readonly #of = new Map<string, Runtime>();

  constructor(host: RuntimeHost, parts: readonly RegionalPart[]) {
    this.#host = host;
    const discards = new Discards(host, parts.length);
    this.#parts = parts.map(({ regions, runtime }, i) => {
      const part = runtime(hostFor(host, new Set(regions), (id) => discards.discarded(id, i)));
      for (const region of regions) this.#of.set(region, part);
      return part;
    });
    this.name = this.#parts[0]?.name ?? "";
    const at = (machine: string): Reach | undefined => {
      const subject = host.subject(machine);
      return subject && this.#of.get(subject.region)?.reach;
    };
    this.reach = {
      hasOtherWays: this.#parts.some(({ reach }) => reach?.hasOtherWays === true),
      endpoint: (machine, port) => at(machine)?.endpoint(machine, port),
      listens: (machine, port) => at(machine)?.listens(machine, port) ?? Promise.resolve(false),
    };
  }

  /** The runtime of a Machine. A region that has none any more waits until it has one again. */
  #at({ id, region }: Subject): Runtime | undefined {
    const part = this.#of.get(region);
    if (!part) this.#host.log.warn({ machine: id, region }, "no cluster runs the Machines of this region");
    return part;
  }

  /** The runtime of a Machine, for a request that needs its answer. */
  #needed(machine: Subject): Runtime {
    const part = this.#at(machine);
    if (!part)
      throw new Refusal(503, { error: `unavailable: no cluster runs the Machines of region ${machine.region}` });
    return part;
  }

  problem(config: MachineConfig): { readonly field: string; readonly message: string } | undefined {
    return this.#parts[0]?.problem(config);
  }

  hasRoom(config: MachineConfig, region: string, replaced?: string): boolean {
    const part = this.#of.get(region);
    return part !== undefined && part.hasRoom?.(config, region, replaced) !== false;
  }

  isUnreachable(id: string): boolean {
    const subject = this.#host.subject(id);
    return subject !== undefined && this.#of.get(subject.region)?.isUnreachable?.(id) === true;
  }

  findImage(image: string): Promise<FoundImage> {
    return this.#parts[0]?.findImage?.(image) ?? Promise.resolve({ digest: "", labels: {} });
  }

  copyProblem(from: string | undefined, to: string | undefined): string | undefined {
    const [source, target] = [this.#of.get(from ?? to ?? ""), this.#of.get(to ?? from ?? "")];
    if (source !== target) return `the cluster of region ${to} cannot copy a volume of region ${from}`;
    return source?.copyProblem?.(from, to);
  }

  create(machine: Subject): void {
    this.#at(machine)?.create(machine);
  }

  start(machine: Subject): void {
    this.#at(machine)?.start(machine);
  }

  stop(machine: Subject, request: StopRequest): void {
    this.#at(machine)?.stop(machine, request);
  }

  suspend(machine: Subject): void {
    this.#at(machine)?.suspend(machine);
  }

  destroy(machine: Subject): void {
    this.#at(machine)?.destroy(machine);
  }

  signal(machine: Subject, signal: SignalName): void {
    this.#at(machine)?.signal(machine, signal);
  }

  exec(machine: Subject, command: Command): Promise<Outcome | undefined> {
    return this.#needed(machine).exec(machine, command);
  }

  terminal(machine: Subject, request: TerminalRequest): Promise<TerminalSession> {
    const part = this.#needed(machine);
    if (!part.terminal) throw new Refusal(501, { error: "terminals are not supported" });
    return part.terminal(machine, request);
  }

  processes(machine: Subject): Promise<readonly Process[]> {
    return this.#needed(machine).processes(machine);
  }

  limitMemory(machine: Subject): void {
    this.#at(machine)?.limitMemory(machine);
  }

  memory(machine: Subject): Promise<Memory> {
    return this.#needed(machine).memory(machine);
  }

  reclaim(machine: Subject, amountMb: number): Promise<number> {
    return this.#needed(machine).reclaim(machine, amountMb);
  }

  /** Which of them has a volume that was deleted is not known, so each looks. */
  volumeChanged(id: string): void {
    const region = regionOfVolume(this.#host, id);
    const parts = region === undefined ? this.#parts : [this.#of.get(region)];
    for (const part of parts) part?.volumeChanged?.(id);
  }

  /** What the runtimes say that answer. @throws if none does. */
  async usage(): Promise<ReadonlyMap<string, Usage>> {
    const said = await Promise.allSettled(this.#parts.map(async (part) => (await part.usage?.()) ?? []));
    const answers = said.flatMap((one) => (one.status === "fulfilled" ? [...one.value] : []));
    const refused = said.find(({ status }) => status === "rejected") as PromiseRejectedResult | undefined;
    if (refused && said.every(({ status }) => status === "rejected")) throw refused.reason;
    return new Map(answers);
  }

  async *logs(machine: Subject, query: LogQuery): AsyncGenerator<LogLine> {
    yield* this.#at(machine)?.logs?.(machine, query) ?? [];
  }

  changed(ids: ReadonlySet<string>): void {
    for (const part of this.#parts) part.changed?.(ids);
  }

  recover(): void {
    for (const part of this.#parts) part.recover?.();
  }

  async close(): Promise<void> {
    await Promise.all(this.#parts.map(async (part) => part.close?.()));
  }
}

/** The region of a volume, or of the volume of a snapshot; undefined if it is deleted. */
function regionOfVolume(host: RuntimeHost, id: string): string | undefined {
  const volume = host.volume(id);
  if (!volume?.isSnapshot) return volume?.region;
  return volume.source === null ? undefined : host.volume(volume.source)?.region;
}

/** The service as the runtime of some regions sees it: without the Machines of others, and without the volumes that others write. */
function hostFor(host: RuntimeHost, regions: ReadonlySet<string>, discarded: (id: string) => void): RuntimeHost {
  const has = (id: string): boolean => regions.has(host.subject(id)?.region ?? "");
  const [first = ""] = regions;
  // Each looks for what is deleted.
  const isOwn = (id: string): boolean => regions.has(regionOfVolume(host, id) ?? first);
  return {
    clock: host.clock,
    delays: host.delays,
    timers: host.timers,
    events: { ...host.events, discarded },
    stops: host.stops,
    subject: (id) => (has(id) ? host.subject(id) : undefined),
    ids: () => host.ids().filter(has),
    app: (id) => {
      const app = host.app(id);
      return app && { ...app, machines: app.machines.filter(has) };
    },
    databases: (network) => host.databases(network),
    // Also those of other regions: a runtime keeps what the service has, wherever it is.
    volume: (id) => host.volume(id),
    unsettledVolumes: () => host.unsettledVolumes().filter(isOwn),
    reachable: (machine) => host.reachable(machine),
    unreachable: (endpoints) => host.unreachable(endpoints),
    drained: (machine) => host.drained(machine),
    settled: () => host.settled(),
    get unsure() {
      return host.unsure;
    },
    get dataId() {
      return host.dataId;
    },
    log: host.log,
  };
}

/** Deleted volumes. Nothing is left of one when every runtime has said so, also one that did not answer for a while. */
class Discards {
  readonly #host: RuntimeHost;
  readonly #parts: number;
  readonly #said = new Map<string, Set<number>>();

  constructor(host: RuntimeHost, parts: number) {
    this.#host = host;
    this.#parts = parts;
  }

  discarded(id: string, part: number): void {
    const said = this.#said.get(id) ?? new Set();
    this.#said.set(id, said.add(part));
    if (said.size < this.#parts) return;
    this.#said.delete(id);
    this.#host.events.discarded(id);
  }
}
