// A service with a proxy in a process of its own: its Machines are simulated, and servers of another process answer for them.
// Arguments: the folder of the service's sources, then as JSON the port on this computer for each port of a Machine, and options.
import { join } from "node:path";
import { createInterface } from "node:readline";
import type * as Service from "../../service/index.ts";
import type { ProxyPorts } from "../../service/proxy/proxy.ts";
import type * as Simulated from "../../service/runtime/simulated.ts";

/** What the process prints when it is ready. */
export interface Proxied {
  readonly url: string;
  readonly pid: number;
  readonly token: string;
  readonly ports: ProxyPorts;
  /** A one-time code that opens the console. */
  readonly code: string;
}

async function run(): Promise<void> {
  const [folder = "", endpoints = "{}", options = "{}"] = process.argv.slice(2);
  const { createService } = (await import(join(folder, "index.ts"))) as typeof Service;
  const { SimulatedRuntime } = (await import(join(folder, "runtime/simulated.ts"))) as typeof Simulated;

  const ports = JSON.parse(endpoints) as Readonly<Record<string, number>>;
  const service = createService({
    delays: "none",
    runtime: (host) =>
      Object.assign(new SimulatedRuntime(host), {
        reach: {
          endpoint: (_: string, port: number) => `127.0.0.1:${ports[port]}`,
          listens: () => Promise.resolve(true),
        },
      }),
    ...(JSON.parse(options) as object),
  });
  const proxy = await service.proxy?.listen({ http: 0, https: 0 });
  const url = await service.app.listen({ host: "127.0.0.1", port: 0, backlog: 4096 });
  const ready = { url, pid: process.pid, token: service.token, ports: proxy, code: service.consoleCode() };
  process.stdout.write(`${JSON.stringify(ready)}\n`);
  process.stdin.once("end", () => process.exit());
  // Each line that it is sent asks for the megabytes that it keeps.
  createInterface(process.stdin).on("line", () => {
    globalThis.gc?.();
    const { heapUsed, external } = process.memoryUsage();
    process.stdout.write(`${(heapUsed + external) / 2 ** 20}\n`);
  });
}

void run();
