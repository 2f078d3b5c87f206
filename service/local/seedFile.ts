// Reads the file of `seed`, which describes the contents of a service.
import { z } from "zod";
import { createApp } from "../../api/apps.ts";
import { imageReference } from "../../api/image.ts";
import { createMachine } from "../../api/machines.ts";
import { appName, hostname, machineName, secretName, volumeName } from "../../api/names.ts";
import { optional, required } from "../../api/schema.ts";
import { createVolume } from "../../api/volumes.ts";
import { readJson } from "./files.ts";

/** Slug of an organization. ASSUMED: an organization's slug follows the rule of App names. */
export const orgSlug = z.string().regex(/^[a-z0-9-]{1,62}$/, "must be 1 to 62 of a-z, 0-9 and -");

const addresses = z.array(z.string());

const org = z.object({
  slug: required(orgSlug, "Slug."),
  name: optional(z.string().min(1), "Name. Default: the slug."),
});

const image = z.object({
  reference: required(imageReference, "Image with its tag."),
  digest: required(
    z.string().regex(/^sha256:[0-9a-f]{64}$/, "must be sha256: and 64 hexadecimal digits"),
    "Digest of the tag.",
  ),
  labels: optional(z.record(z.string(), z.string()), "Labels of the image."),
});

const records = z.object({
  a: optional(addresses, "IPv4 addresses."),
  aaaa: optional(addresses, "IPv6 addresses."),
  cname: optional(addresses, "Names it is an alias of."),
  acme_challenge_cname: optional(z.string(), "Target of its ACME challenge."),
  ownership_txt: optional(z.string(), "Text that proves ownership."),
  soa: optional(z.string(), "Name server of its zone."),
});

const dns = z.object({
  hostname: required(hostname, "Hostname."),
  records: required(records, "DNS records of the hostname; others do not exist."),
});

const app = z.object({
  org: optional(orgSlug, "Organization. Default: `personal`."),
  name: required(appName, "Name."),
  network: optional(createApp.shape.network.unwrap(), "Private network."),
  secrets: optional(z.record(secretName, z.string()), "Values by name.", { secret: true }),
  volumes: optional(
    z.array(createVolume.extend({ name: required(volumeName, "Name.") })),
    "Bodies of requests that create volumes.",
  ),
  machines: optional(
    z.array(createMachine.extend({ name: required(machineName, "Name.") })),
    "Bodies of requests that create Machines; a mount may name a volume in the file.",
  ),
});

const seedFile = z.object({
  orgs: optional(z.array(org), "Organizations."),
  images: optional(z.array(image), "Images with the digests of their tags."),
  dns: optional(z.array(dns), "What the DNS answers."),
  apps: optional(z.array(app), "Apps with their contents."),
});

/** The contents of a seed file. */
export type Seed = z.infer<typeof seedFile>;
/** An App in a seed file. */
export type SeedApp = z.infer<typeof app>;

/** Reads a seed file. An error names the place in the file, what it got and what is allowed. */
export const readSeed = (file: string): Seed => readJson("seed", file, seedFile);
