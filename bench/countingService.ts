// The service for the real providers: in this process, without a disk and without delays. It counts its requests, and can
// delay its answers.
import { setTimeout as sleep } from "node:timers/promises";
import { createService, seededRandom, type ServiceOptions } from "../service/index.ts";

/** The number of requests by operation of the interface. */
export type Requests = Record<string, number>;

/** A service that counts. */
export class CountingService {
  readonly url: string;
  readonly token: string;
  /** Milliseconds by which every answer is delayed. */
  delay = 0;
  readonly #close: () => Promise<void>;
  #requests: Requests = {};

  private constructor(url: string, token: string, close: () => Promise<void>) {
    this.url = url;
    this.token = token;
    this.#close = close;
  }

  /** Starts an empty service. All of them accept the same token, so that stacks keep their configuration. */
  static async start({
    port = 0,
    rateLimits = "off",
    delays = "none",
  }: Pick<ServiceOptions, "rateLimits" | "delays"> & { readonly port?: number } = {}): Promise<CountingService> {
    let counting: CountingService | undefined;
    const service = createService({
      delays,
      rateLimits,
      random: seededRandom("bench"),
      onRequest: ({ operation = "none" }) => {
        if (counting) counting.#requests[operation] = (counting.#requests[operation] ?? 0) + 1;
      },
    });
    service.app.addHook("onSend", async () => {
      if (counting && counting.delay > 0) await sleep(counting.delay);
    });
    const url = await service.app.listen({ host: "127.0.0.1", port });
    return (counting = new CountingService(url, service.token, () => service.close()));
  }

  /** An empty service at the same address, as a replacement. */
  async restart(): Promise<CountingService> {
    await this.#close();
    return CountingService.start({ port: Number(new URL(this.url).port) });
  }

  /** The requests since the last call. */
  taken(): Requests {
    const requests = this.#requests;
    this.#requests = {};
    return requests;
  }

  close(): Promise<void> {
    return this.#close();
  }
}
