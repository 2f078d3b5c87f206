// Waiting until a hostname's certificate is valid (docs/interface.md#certificate-checks).
import { z } from "zod";
import { appName } from "../../api/names.ts";
import { optional, required } from "../../api/schema.ts";
import type { Api } from "../client/api.ts";
import { growingPause } from "../../api/growingPause.ts";
import { Pending, poll } from "../client/poll.ts";
import { MachinesError } from "../client/errors.ts";
import { pathId } from "../core/ids.ts";
import { defineResource, type Call } from "../core/resource.ts";
import { type Detail } from "./hostnameCertificates.ts";
import { triggers } from "../shared/triggers.ts";

const inputs = z.object({
  app: required(appName, "App that serves the hostname: the `id` of an App. Changing it waits again.", {
    format: "reference",
  }),
  hostname: required(
    z.string(),
    "Hostname to wait for: the `id` or the `hostname` of its certificate. Changing it waits again.",
    { format: "reference" },
  ),
  triggers: triggers(
    "this resource waits for the certificate again; for example, use the `uploadedAt` of a CustomCertificate",
  ),
});

const outputs = z.object({
  status: optional(z.string(), "Status of the hostname: `active`."),
  expiresAt: optional(z.string(), "RFC 3339 time at which the certificate that serves the hostname expires."),
});

const isActive = ({ status }: Detail): boolean => status === "active";

/** A custom certificate is first in the list, and takes precedence. */
const toLive = (detail: Detail) => ({
  status: detail.status,
  expiresAt: detail.certificates?.find(({ status }) => status === "active")?.expiresAt,
});

export const certificateValidation = defineResource({
  name: "CertificateValidation",
  summary: "Waits until the certificate of a hostname is valid.",
  description:
    "While it is created, the service checks the DNS at intervals until the hostname is `active`. It creates nothing on the service, and deleting it sends nothing. It waits 30 minutes, or as long as `customTimeouts` says. When a refresh finds the hostname no longer active, the validation counts as deleted, and the next up waits again.",
  inputs,
  outputs,
  id: pathId("app", "hostname"),
  unlisted: "it is a wait, and nothing in the service",
  partOf: "AcmeCertificate",
  replaceOn: ["app", "hostname"],
  dependsOn: { status: ["triggers"], expiresAt: ["triggers"] },
  minutes: { create: 30, update: 30 },

  async create({ inputs: { app, hostname }, ...call }) {
    return { app, hostname, ...toLive(await untilActive(call, { appName: app, hostname })) };
  },

  async read({ id, api }) {
    const live = await api.certificates.get({ appName: id.app, hostname: id.hostname });
    return isActive(live) ? { app: id.app, hostname: id.hostname, ...toLive(live) } : undefined;
  },

  async update({ id, ...call }) {
    return toLive(await untilActive(call, { appName: id.app, hostname: id.hostname }));
  },

  delete: () => Promise.resolve(),
});

type HostnameKey = { readonly appName: string; readonly hostname: string };

/** Milliseconds. Reads are cheap; five failed checks in an hour cause a pause of an hour. */
const firstLook = 250;
const longestLook = 5000;
const toAnswer = 1000;
const firstCheck = 30_000;
const longestCheck = 20 * 60_000;

/** Waits until the hostname is active: reads often, requests few checks, and none while the service demands a pause. */
export async function untilActive(
  { api, progress }: Pick<Call, "api" | "progress">,
  key: HostnameKey,
): Promise<Detail> {
  const { clock, deadline } = api;
  const nextCheck = growingPause(firstCheck, longestCheck, 3);
  let due = 0;
  let limited = 0;
  const readHostname = async (): Promise<Detail | Pending> => {
    const isCheck = clock.now() >= due && clock.now() >= limited;
    const live: Detail = isCheck ? await api.certificates.check(key) : await api.certificates.get(key);
    if (isCheck) due = clock.now() + nextCheck();
    limited = limitOf(live);
    if (isActive(live)) return live;
    if (limited >= deadline.at) throw tooLong(api, key, live);
    return new Pending(`waiting for ${key.hostname}: ${stateOf(live)}`, () => tooLate(api, key, live));
  };
  return poll({ api, progress }, readHostname, { first: firstLook, longest: longestLook, margin: toAnswer });
}

/** The time until which the service accepts no more checks. */
const limitOf = ({ rateLimitedUntil }: Detail): number => (rateLimitedUntil ? Date.parse(rateLimitedUntil) || 0 : 0);

/** The service accepts no check within the operation's time limit, so waiting is useless. */
const tooLong = ({ deadline }: Api, { appName: app, hostname }: HostnameKey, live: Detail): MachinesError =>
  new MachinesError(
    "wait-timeout",
    `${hostname} of App ${app} cannot become active in time: ${stateOf(live)} ` +
      `The time limit of ${deadline.allowed} ends before that. ${waitsAgain}`,
  );

const waitsAgain = "Nothing was created; the next up waits again. `customTimeouts` allows more time.";

function tooLate({ deadline }: Api, { appName: app, hostname }: HostnameKey, live: Detail): MachinesError {
  return new MachinesError(
    "wait-timeout",
    `${hostname} of App ${app} did not become active within ${deadline.allowed}: ${stateOf(live)} ` + waitsAgain,
  );
}

/** The reason why a hostname is not active yet, and what to do about it. */
function stateOf({ status, validationErrors = [], rateLimitedUntil, configured }: Detail): string {
  const problems = validationErrors.map(({ message, remediation }) =>
    [message, remediation].filter(Boolean).join(". "),
  );
  const why =
    problems.length > 0 ? problems.join(" ") : configured === false ? "The DNS does not lead to the App yet." : "";
  const limit = rateLimitedUntil ? `The service accepts no further check before ${rateLimitedUntil}.` : "";
  return [`it is ${status ?? "in no known state"}.`, why, limit].filter(Boolean).join(" ");
}
