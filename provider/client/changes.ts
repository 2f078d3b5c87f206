// What changed in an organization since the last look (docs/interface.md#organization-lists). The lists show changes
// late and in no certain order, so every look goes back a little behind the last one, and what was told before is left
// out.
import { MachinesError } from "./errors.ts";
import type { Api, AnswerOf } from "./api.ts";
import { orgMachinePages, orgVolumePages } from "./pages.ts";
import { apiOf, type Client } from "./publicClient.ts";

type OrgMachine = AnswerOf<"orgs", "machines">["machines"][number];
type OrgVolume = AnswerOf<"orgs", "volumes">["volumes"][number];
type Item = OrgMachine | OrgVolume;
type ItemOf<Kind> = Kind extends "machines" ? OrgMachine : OrgVolume;

/** Where a look ended: plain JSON, to be kept in a file until the next one. */
export interface Position {
  /** RFC 3339 time of the latest change that was seen; empty when none ever was. */
  readonly at: string;
  /** Changes that a look from here on meets again, as they were told. */
  readonly told: readonly string[];
}

/** What is asked for. */
export interface ChangesOptions<Kind extends "machines" | "volumes"> {
  /** Slug of the organization; the client's when left out. */
  readonly organization?: string | undefined;
  readonly kind: Kind;
  /** `next` of the look before, or an RFC 3339 time to begin at; from the beginning when left out. */
  readonly since?: Position | string | undefined;
  /**
   * Seconds a change may take to show up in the list, 60 when left out. How long it really takes is not documented: a
   * longer overlap costs larger answers and nothing else.
   */
  readonly overlapSeconds?: number | undefined;
}

/** What a look came to. */
export interface Changes<T> {
  /** What changed, oldest change first, as it is now; what was destroyed is among it, in a state that says so. */
  readonly changes: readonly T[];
  /** Where the next look begins. */
  readonly next: Position;
  /** Regions that did not answer; the next look begins where this one did, so that their changes are not missed. */
  readonly errorRegions: readonly string[];
}

// ASSUMED: a change shows up in the organization lists within a minute (docs/interface.md#organization-lists names no
// time).
const usualOverlap = 60;

/** What changed in an organization since the last look: the changes, and where the next look begins. */
export async function changesSince<Kind extends "machines" | "volumes">(
  client: Client,
  { organization = client.organization, kind, since, overlapSeconds = usualOverlap }: ChangesOptions<Kind>,
): Promise<Changes<ItemOf<Kind>>> {
  const from = positionOf(since);
  const overlap = overlapSeconds * 1000;
  const { items, errorRegions } = await look(apiOf(client), kind, organization, before(from.at, overlap));
  const told = new Set(from.told);
  // A time is where the program begins: what is older was met only for the overlap.
  const isOld = (item: Item) => typeof since === "string" && timeOf(item) < secondOf(since);
  const changes = items.filter((item) => !told.has(wordsOf(item)) && !isOld(item));
  const latest = items.reduce(
    (at, item) => (timeOf(item) > timeOf({ updatedAt: at }) ? (item.updatedAt ?? at) : at),
    from.at,
  );
  const at = errorRegions.length > 0 ? from.at : latest;
  const least = secondOf(before(at, overlap));
  const met = items.filter((item) => timeOf(item) >= least).map(wordsOf);
  // A region that did not answer this time will tell again what it told before.
  const kept = errorRegions.length > 0 ? [...new Set([...from.told, ...met])] : met;
  return { changes: changes, next: { at, told: kept }, errorRegions };
}

function positionOf(since: Position | string | undefined): Position {
  if (typeof since !== "string") return since ?? { at: "", told: [] };
  if (Number.isNaN(Date.parse(since)))
    throw new MachinesError("invalid-input", `since: got ${JSON.stringify(since)}; must be an RFC 3339 time`);
  return { at: since, told: [] };
}

const before = (at: string, milliseconds: number): string =>
  at === "" ? "" : new Date(Date.parse(at) - milliseconds).toISOString();

/** Milliseconds since 1970; 0 of what has no time. */
const timeOf = ({ updatedAt = "" }: { readonly updatedAt?: string | undefined }): number => Date.parse(updatedAt) || 0;

// ASSUMED: the lists compare exact times and show them cut to the second.
const secondOf = (time: string): number => Math.floor(timeOf({ updatedAt: time }) / 1000) * 1000;

/** A change in words: two in the same instant differ in what they changed. */
const wordsOf = (item: Item): string =>
  [
    `${item.appName}/${item.id}`,
    item.updatedAt,
    item.state,
    "version" in item ? item.version : undefined,
    "sizeGb" in item ? item.sizeGb : undefined,
    "attachedMachineId" in item ? item.attachedMachineId : undefined,
  ]
    .map((part) => part ?? "")
    .join(" ");

/** Everything that changed after a time, each once, oldest change first: pages come in no certain order (rule 4). */
async function look(api: Api, kind: "machines" | "volumes", orgSlug: string, updatedAfter: string) {
  const args = { orgSlug, includeDeleted: true, ...(updatedAfter === "" ? {} : { updatedAfter }) };
  const found: Item[] = [];
  const errorRegions = new Set<string>();
  if (kind === "machines") {
    for await (const page of orgMachinePages(api, args)) {
      found.push(...page.machines);
      for (const region of page.errorRegions ?? []) errorRegions.add(region);
    }
  } else for await (const page of orgVolumePages(api, args)) found.push(...page.volumes);
  const sorted = found.toSorted((a, b) => timeOf(a) - timeOf(b));
  const latest = new Map(sorted.map((item) => [`${item.appName}/${item.id}`, item]));
  return {
    items: sorted.filter((item) => latest.get(`${item.appName}/${item.id}`) === item),
    errorRegions: [...errorRegions],
  };
}
