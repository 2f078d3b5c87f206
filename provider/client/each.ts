// Paged lists, item by item: the next page is requested after the last item of the previous one.
import type { Api, AnswerOf } from "./api.ts";
import { appPages, certificatePages, orgMachinePages, orgVolumePages } from "./pages.ts";
import { apiOf, type Client } from "./publicClient.ts";

type Args<Pages extends (api: Api, args: never) => unknown> = Parameters<Pages>[1];
/** Arguments of an operation on an organization, the client's own by default. */
type OfOrganization<Args> = Omit<Args, "orgSlug"> & { readonly organization?: string | undefined };

const orgSlugOf = (client: Client, organization: string | undefined) => organization ?? client.organization;

/** Every App of an organization. */
export async function* eachApp(
  client: Client,
  { organization, ...args }: OfOrganization<Args<typeof appPages>> = {},
): AsyncGenerator<AnswerOf<"apps", "list">["apps"][number]> {
  const orgSlug = orgSlugOf(client, organization);
  for await (const { apps } of appPages(apiOf(client), { ...args, orgSlug })) yield* apps;
}

/** Every hostname of an App. */
export async function* eachCertificate(
  client: Client,
  args: Args<typeof certificatePages>,
): AsyncGenerator<AnswerOf<"certificates", "list">["certificates"][number]> {
  for await (const { certificates } of certificatePages(apiOf(client), args)) yield* certificates;
}

/** Every Machine of an organization, oldest change first; one that changes meanwhile may be returned twice. */
export async function* eachOrgMachine(
  client: Client,
  { organization, ...args }: OfOrganization<Args<typeof orgMachinePages>> = {},
): AsyncGenerator<AnswerOf<"orgs", "machines">["machines"][number]> {
  const orgSlug = orgSlugOf(client, organization);
  for await (const { machines } of orgMachinePages(apiOf(client), { ...args, orgSlug })) yield* machines;
}

/** Every volume of an organization, oldest change first; one that changes meanwhile may be returned twice. */
export async function* eachOrgVolume(
  client: Client,
  { organization, ...args }: OfOrganization<Args<typeof orgVolumePages>> = {},
): AsyncGenerator<AnswerOf<"orgs", "volumes">["volumes"][number]> {
  const orgSlug = orgSlugOf(client, organization);
  for await (const { volumes } of orgVolumePages(apiOf(client), { ...args, orgSlug })) yield* volumes;
}
