// A person with a stack and an organization: the same interface as a simulation of one service, so that the campaign's player plays and
// judges a stack in the universe too.
import type { Service } from "../../service/index.ts";
import { tokenOfOthers } from "../faults/others.ts";
import type { TestService } from "../support/startService.ts";
import { Computers, Process, type Simulation } from "../support/simulation.ts";
import type { SimulatedTime } from "../support/simulatedTime.ts";
import { plantedIn } from "./bugs.ts";
import type { Asked, World } from "./world.ts";

/** Simulated milliseconds after which one run of a person counts as stuck. */
const longestRun = 6 * 3600_000;

/** Enters a universe with an organization. */
export async function enter(world: World, slug: string): Promise<Simulation> {
  const token = `mcs_${slug}`;
  await world.enter(slug, token);
  await world.enter(slug, tokenOfOthers(slug));
  const { time, watching } = world;
  const computers = new Computers();
  let processes = 0;
  let last = await world.led();
  const led = (): Service => (last = world.leader ?? last);
  const service: TestService<SimulatedTime> = {
    url: "http://machines.example",
    ...{ token, clock: time, requests: [], bodies: [] },
    get service() {
      return seenBy(slug, led(), world);
    },
    fail: () => undefined,
    close: () => Promise.resolve(),
  };
  /** Waits for work, and then for a member that can be asked what there is. */
  const drive = async <T>(work: Promise<T>): Promise<T> => {
    let cancel: () => void = () => undefined;
    const stuck = new Promise<never>((_, reject) => {
      cancel = time.after(longestRun, () => reject(new Error(`a run is not done after ${longestRun / 1000} s`)));
    });
    try {
      const result = await Promise.race([work, stuck]);
      await world.led();
      return result;
    } finally {
      cancel();
    }
  };
  return {
    time,
    service,
    mistakes: world.mistakes,
    isOpen: (owner) => computers.isOpen(owner),
    moveAway: () => computers.moveAway(),
    wait: (ms) => drive(world.wait(ms)),
    async watch(work) {
      const watched = { requests: [] };
      return { result: await watching.run(watched, work), watched };
    },
    start({ death, slow = [], settings = {}, signal } = {}) {
      return new Process({
        ...{ time, wire: world, drive, openJournal: (warn) => computers.open(warn), watching },
        ...{ seed: `${world.seed}/${slug}/${++processes}`, death, slow, signal },
        settings: { endpoint: service.url, token, organization: slug, ...settings },
        planted: plantedIn(world.bug),
      });
    },
    async close() {
      computers.remove();
    },
  };
}

/** The service as one organization sees it, through whichever member leads. */
function seenBy(slug: string, leader: Service, world: World): Service {
  return {
    ...leader,
    slug,
    app: { inject: (request: Asked) => world.ask(request) },
    audit: { after: () => world.audited },
    faults: { clear: () => undefined, none: true },
  } as unknown as Service;
}
