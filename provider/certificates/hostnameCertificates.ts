// Shared parts of the two kinds of certificates of a hostname (docs/interface.md#certificates).
import { z } from "zod";
import { appName, hostname } from "../../api/names.ts";
import { named, optional, required } from "../../api/schema.ts";
import type { AnswerOf, Api } from "../client/api.ts";
import { orUndefined } from "../client/existence.ts";
import type { CreateSpec } from "../core/exactlyOnce.ts";
import { deleteBeforeReplaceAdvice } from "../core/dataLoss.ts";
import { MachinesError } from "../client/errors.ts";
import { everyCertificate } from "../client/pages.ts";
import type { ListedObject, Pass } from "../core/listing.ts";

/** A hostname and its certificates. */
export type Detail = AnswerOf<"certificates", "get">;
/** One certificate of a hostname. */
type CertificateEntry = NonNullable<Detail["certificates"]>[number];
type CertificateKind = "acme" | "custom";
type CertificateType = "AcmeCertificate" | "CustomCertificate";
type HostnameKey = { readonly appName: string; readonly hostname: string };

/** The kind of a certificate: issued with ACME, or uploaded. */
export const ofHostname = {
  app: required(appName, "App that serves the hostname: the `id` of an App. Changing it replaces the certificate.", {
    format: "reference",
  }),
  hostname: required(
    hostname.regex(/^[^A-Z]*$/, "must be in lower case"),
    "Hostname in lower case, also a wildcard such as `*.example.com`. Changing it replaces the certificate.",
  ),
};

const dnsRecord = named(
  "DnsRecord",
  z.object({
    type: required(z.string(), "`A`, `AAAA`, `CNAME` or `TXT`."),
    name: required(z.string(), "Full name of the record."),
    value: required(z.string(), "Its value."),
  }),
);

/** The reported outputs of a certificate. */
export const facts = {
  status: optional(z.string(), "`active`, `pending_validation` or `pending_ownership`; any other: still being issued."),
  configured: optional(z.boolean(), "Whether the DNS leads to the App."),
  dnsProvider: optional(z.string(), "Provider of the hostname's DNS."),
  dnsRecords: required(
    z.array(dnsRecord),
    "Records to create: those that lead to the App, the one that answers the ACME challenge, and the one that proves ownership. Addresses that the App gets later appear after the next refresh.",
  ),
  expiresAt: optional(z.string(), "RFC 3339 time of expiry."),
};

/** The certificate of a kind, if the hostname has one. */
export const entryOf = ({ certificates = [] }: Detail, kind: CertificateKind): CertificateEntry | undefined =>
  certificates.find(({ source }) => source === (kind === "acme" ? "fly" : "custom"));

/** Whether the hostname has a certificate of a kind, or has requested one. */
export const holds = (detail: Detail, kind: CertificateKind): boolean =>
  entryOf(detail, kind) !== undefined || (kind === "acme" && detail.acmeRequested === true);

/** The facts of a certificate of a hostname. */
export const factsOf = (detail: Detail, kind: CertificateKind) => ({
  status: entryOf(detail, kind)?.status ?? detail.status,
  configured: detail.configured,
  dnsProvider: detail.dnsProvider,
  dnsRecords: recordsOf(detail),
  expiresAt: entryOf(detail, kind)?.expiresAt,
});

/**
 * Warns of a hostname that another App has, or has taken over: the service then keeps the certificate waiting for a proof, and says
 * which one.
 */
export function warnIfTaken(warn: (message: string) => void, type: CertificateType, app: string, detail: Detail): void {
  for (const { code, message = "", remediation = "" } of detail.validationErrors ?? [])
    if (code?.startsWith("HOSTNAME_TAKEN"))
      warn(`the ${type} of ${detail.hostname} of App ${app}: ${message}. ${remediation}`);
}

/** The records of a hostname in a stable order. Without addresses a CNAME points to the App. */
function recordsOf({ hostname: host, dnsRequirements = {} }: Detail) {
  const { a = [], aaaa = [], cname, acmeChallenge, ownership } = dnsRequirements;
  const leading = [
    ...[...a].sort().map((value) => ({ type: "A", name: host, value })),
    ...[...aaaa].sort().map((value) => ({ type: "AAAA", name: host, value })),
  ];
  const record = (type: string, name: string | undefined, value: string | undefined) =>
    name && value ? [{ type, name, value }] : [];
  return [
    ...(leading.length > 0 ? leading : record("CNAME", host, cname)),
    ...record("CNAME", acmeChallenge?.name, acmeChallenge?.target),
    ...record("TXT", ownership?.name, ownership?.appValue),
  ];
}

/**
 * Removes the certificates of one kind, and with the last certificate the hostname: at once, because a hostname that an interrupted
 * deletion left without certificates would be in no state after a refresh.
 * @throws ApiError 404 if nothing exists.
 */
export async function removeKind(api: Api, key: HostnameKey, kind: CertificateKind): Promise<void> {
  const other = kind === "acme" ? "custom" : "acme";
  // Deleting a hostname deletes both kinds.
  if (!holds(await api.certificates.get(key), other)) return api.certificates.delete(key);
  await orUndefined<unknown>(() =>
    kind === "acme" ? api.certificates.deleteAcme(key) : api.certificates.deleteCustom(key),
  );
  // The other kind may have been removed meanwhile, by the same update.
  const remaining = await orUndefined(() => api.certificates.get(key));
  if (remaining && !holds(remaining, "acme") && !holds(remaining, "custom")) await api.certificates.delete(key);
}

/** How to find a certificate of a hostname, before and after its creation. */
export const ofKind = (
  api: Api,
  type: CertificateType,
  { appName: app, hostname: host }: HostnameKey,
): Omit<CreateSpec<Detail, Detail>, "owner" | "send"> => ({
  what: `the ${type} of ${host}`,
  place: `${type}s of App ${app}`,
  name: host,
  unique: true,
  async list() {
    const found = await orUndefined(() => api.certificates.get({ appName: app, hostname: host }));
    return found && holds(found, type === "AcmeCertificate" ? "acme" : "custom") ? [found] : [];
  },
  keyOf: (found) => found.hostname,
  pick: ([found]) => found,
  conflictWith: () => new MachinesError("refused", isThereAlready(type, app, host)),
});

/** The reason why an existing certificate is not adopted. */
const isThereAlready = (type: string, app: string, host: string): string =>
  `${host} has a certificate of this kind on App ${app} already. ` +
  `Take it over with \`pulumi import machines:index:${type} <name> '${app}/${host}'\`, or delete it first. ${deleteBeforeReplaceAdvice}`;

/** A hostname of an App, and its kinds of certificates. */
interface ListedHostname {
  readonly object: ListedObject;
  readonly acme: boolean;
  readonly custom: boolean;
}

/** The hostnames of an App. If the list does not include their certificates, each hostname is read. */
export const listHostnames = ({ api, answers }: Pass, appName: string): Promise<readonly ListedHostname[]> =>
  answers.get(`hostnames/${appName}`, async () => {
    const all = await everyCertificate(api, { appName });
    return Promise.all(
      all.map(async ({ hostname: host, createdAt, ...listed }) => {
        const isComplete = listed.hasCustomCertificate !== undefined && listed.hasFlyCertificate !== undefined;
        const detail = isComplete ? undefined : await api.certificates.get({ appName, hostname: host });
        const acme = detail
          ? holds(detail, "acme")
          : listed.hasFlyCertificate === true || listed.acmeRequested === true;
        const custom = detail ? holds(detail, "custom") : listed.hasCustomCertificate === true;
        return { object: { parts: { app: appName, hostname: host }, createdAt }, acme, custom };
      }),
    );
  });
