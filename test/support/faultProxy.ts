// Simulates network faults between client and service: a TCP proxy that cuts, slices and stalls. Faults select requests by
// method, path and count, so that tests are deterministic.
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** One network fault. */
export interface NetworkFault {
  /** Matched against the request as `POST /v1/apps`. */
  readonly on: RegExp;
  /** The first matching request that it affects, counted from 1 since it was planned; 1 if omitted. */
  readonly nth?: number;
  /** The number of requests from there on; one if omitted. */
  readonly times?: number;
  /**
   * - `cutRequest`: the connection is reset before anything is forwarded.
   * - `cutAnswer`: it is reset after this many bytes of the answer; 0 resets it at the answer's first byte.
   * - `stallAnswer`: nothing arrives after this many bytes of the answer, and the connection stays open.
   * - `sliceAnswer`: the answer arrives in pieces of this many bytes, one per this many milliseconds.
   */
  readonly do:
    | { readonly cutRequest: true }
    | { readonly cutAnswer: number }
    | { readonly stallAnswer: number }
    | { readonly sliceAnswer: { readonly bytes: number; readonly everyMs: number } };
}

/** A proxy in front of a service. */
export interface FaultProxy {
  /** The URL of the proxy for clients. */
  readonly url: string;
  /** Every request that arrived, as `POST /v1/apps`, oldest first. */
  readonly arrived: readonly string[];
  /** Faults that took effect so far, as the affected request. */
  readonly met: readonly string[];
  /** The number of open client connections. */
  readonly open: () => number;
  plan(...faults: NetworkFault[]): void;
  close(): Promise<void>;
}

/** Starts a proxy in front of the service at a URL, on a free port of this computer. */
export async function startFaultProxy(target: string): Promise<FaultProxy> {
  const { hostname, port } = new URL(target);
  const arrived: string[] = [];
  const met: string[] = [];
  const clients = new Set<Socket>();
  let plans: { readonly fault: NetworkFault; seen: number }[] = [];

  const take = (request: string): NetworkFault["do"] | undefined => {
    arrived.push(request);
    let hit: NetworkFault["do"] | undefined;
    for (const plan of plans.filter(({ fault }) => fault.on.test(request))) {
      const { nth = 1, times = 1, do: fault } = plan.fault;
      plan.seen++;
      if (plan.seen >= nth) hit ??= fault;
      if (plan.seen >= nth + times - 1) plans = plans.filter((other) => other !== plan);
    }
    if (hit) met.push(request);
    return hit;
  };

  const server = createServer((client) => {
    clients.add(client);
    const service = connect(Number(port), hostname);
    let fault: NetworkFault["do"] | undefined;
    let passed = 0;
    const slices: Buffer[] = [];
    let slicing: NodeJS.Timeout | undefined;

    const requests = requestsIn((request, bytes) => {
      fault = take(request);
      passed = 0;
      if (fault && "cutRequest" in fault) cut();
      else service.write(bytes);
    });
    const cut = () => {
      service.destroy();
      client.resetAndDestroy();
    };
    const slice = (bytes: Buffer, size: number, everyMs: number) => {
      for (let at = 0; at < bytes.length; at += size) slices.push(bytes.subarray(at, at + size));
      slicing ??= setInterval(() => {
        const next = slices.shift();
        if (next) client.write(next);
        else {
          clearInterval(slicing);
          slicing = undefined;
        }
      }, everyMs);
    };

    client.setNoDelay(true);
    client.on("data", requests);
    service.on("data", (bytes) => {
      if (fault && "sliceAnswer" in fault) return slice(bytes, fault.sliceAnswer.bytes, fault.sliceAnswer.everyMs);
      const limit =
        fault && "cutAnswer" in fault
          ? fault.cutAnswer
          : fault && "stallAnswer" in fault
            ? fault.stallAnswer
            : Infinity;
      const through = bytes.subarray(0, Math.max(0, limit - passed));
      passed += bytes.length;
      const isCut = fault !== undefined && "cutAnswer" in fault && passed > limit;
      // Forwarded bytes must be delivered before the reset, which would discard them.
      if (through.length > 0) client.write(through, () => void (isCut && cut()));
      else if (isCut) cut();
    });
    const end = () => {
      clearInterval(slicing);
      clients.delete(client);
      service.destroy();
      client.destroy();
    };
    for (const socket of [client, service]) socket.on("error", end).on("close", end);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrived,
    met,
    open: () => clients.size,
    plan: (...faults) => void plans.push(...faults.map((fault) => ({ fault, seen: 0 }))),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const client of clients) client.destroy();
      }),
  };
}

/** Finds complete requests in the client's data. Bodies have a length: our client never sends them in chunks. */
function requestsIn(found: (request: string, bytes: Buffer) => void): (bytes: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      const end = rest.indexOf("\r\n\r\n");
      if (end < 0) return;
      const head = rest.subarray(0, end).toString("latin1");
      const size = end + 4 + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
      if (rest.length < size) return;
      const whole = rest.subarray(0, size);
      rest = rest.subarray(size);
      found(head.slice(0, head.indexOf(" HTTP/")), whole);
    }
  };
}
