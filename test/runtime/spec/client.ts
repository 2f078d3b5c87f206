// Takes the place of test/service/client.ts when the specification tests run on containers (vitest.config.mts).
import { expect, vi } from "vitest";
import { ManualClock, type Clock, type Service, type ServiceOptions } from "../../../service/index.ts";
import { isSettled } from "../../../service/lifecycle/machines.ts";
import { unsettledVolumes } from "../../../service/lifecycle/volumes.ts";
import type { IssuerFactory, IssuerHost } from "../../../service/runtime/certificateIssuer.ts";
import { LocalAuthority } from "../../../service/runtime/localAuthority.ts";
import { localIssuer } from "../../../service/runtime/localIssuer.ts";
import { dockerRuntime } from "../../../service/runtime/docker/index.ts";
import type { RuntimeFactory } from "../../../service/runtime/runtime.ts";
import type { MachineRow } from "../../../service/store/rows.ts";
import {
  caller as plainCaller,
  callerWith as plainCallerWith,
  requestsOfWeb,
  withApp as plainWithApp,
  type Call,
} from "../../service/client.ts";
import { instead } from "../../support/instead.ts";
import { afterThisTest } from "../../support/leftovers.ts";
import { hang } from "../../support/patience.mts";
import { removeOf } from "../cleaning.ts";
import { image } from "../image.ts";

export { pages, type Answer, type Call } from "../../service/client.ts";

/** The running services, by their address. */
const services = new Map<string, Service>();

/** The Docker runtime, for which every image is the one of the tests: the names in the tests exist in no registry. */
async function runtimeOfTests(): Promise<RuntimeFactory> {
  const create = await dockerRuntime();
  return (host) => {
    const runtime = create(host);
    const find = runtime.findImage?.bind(runtime);
    if (!find) throw new Error("the Docker runtime finds no images");
    return Object.assign(runtime, { findImage: () => find(image) });
  };
}

/** An issuer with a real authority, and the hostnames whose certificates it is issuing. */
function issuerOfTests(): { readonly create: IssuerFactory; readonly open: ReadonlySet<string> } {
  const open = new Set<string>();
  const create: IssuerFactory = (host) => {
    const events: IssuerHost["events"] = {
      issued(subject, certificate) {
        host.events.issued(subject, certificate);
        open.delete(subject);
      },
      refused(subject, problem) {
        host.events.refused(subject, problem);
        open.delete(subject);
      },
    };
    const issuer = localIssuer(new LocalAuthority(host.folder), instead(host, { events }));
    return {
      ...issuer,
      request(wanted) {
        open.add(wanted.subject);
        issuer.request(wanted);
      },
    };
  };
  return { create, open };
}

/** The hostnames of a service whose certificates are being issued. */
const issuing = new WeakMap<Service, ReadonlySet<string>>();

/** Resolves when the issuer of a service has reported everything, and its reports can be read. */
async function isIssued(service: Service): Promise<void> {
  await vi.waitFor(() => expect(issuing.get(service)?.size ?? 0).toBe(0), { interval: 1, timeout: hang });
  await service.context.store.unsettled;
}

/** Resolves when nothing follows by itself, as after every request on the simulated runtime without delays. */
const settled = ({ context }: Service): Promise<void> =>
  vi.waitFor(
    () => {
      const machines = context.store.all<MachineRow>("SELECT * FROM machines WHERE state <> 'destroyed'");
      const moving = machines
        .filter((machine) => !isSettled(context, machine))
        .map(({ id, state }) => `${id} ${state}`);
      const waiting = [...moving, ...unsettledVolumes(context)];
      if (waiting.length > 0) throw new Error(`not settled: ${waiting.join(", ")}`);
    },
    { interval: 5, timeout: hang },
  );

/** Sends requests; each that changes something is answered after all its effects. */
const settling =
  (service: Service, call: Call): Call =>
  async (method, ...request) => {
    // The test may have moved the clock to a renewal.
    await isIssued(service);
    const answer = await call(method, ...request);
    if (method === "GET") return answer;
    await settled(service);
    await isIssued(service);
    return answer;
  };

/** Sends requests below `/v1` of a service. */
export function caller(url: string, token: string): Call {
  const service = services.get(url);
  if (!service) throw new Error(`no service of this test has the address ${url}`);
  return settling(service, plainCaller(url, token));
}

/** The same with a new token. */
export const callerWith: typeof plainCallerWith = (app, ...more) =>
  settling(app.service, plainCallerWith(app, ...more));

/** A service with the App `web` whose Machines are containers; they are removed after the test. */
export async function withApp<C extends Clock | undefined = undefined>(options: ServiceOptions & { clock?: C } = {}) {
  let dataId: string | undefined;
  afterThisTest(async () => {
    if (dataId !== undefined) await removeOf(dataId);
  });
  const { create: issuer, open } = issuerOfTests();
  const app = await plainWithApp<C>({ ...options, issuer, runtime: await runtimeOfTests() });
  issuing.set(app.service, open);
  ({ dataId } = app.service.context);
  services.set(app.url, app.service);
  afterThisTest(() => void services.delete(app.url));
  return { ...app, ...requestsOfWeb(caller(app.url, app.token)) };
}

/** The same with a clock that stands still. Volumes and clusters have simulated times on every runtime; Machines do not. */
export const withStillClock = (options: Omit<ServiceOptions, "clock"> = {}) =>
  withApp({ delays: "believable", ...options, clock: new ManualClock() });
