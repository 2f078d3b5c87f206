// Access tokens that are valid for only one App (docs/interface.md#deploy-tokens).
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { appName } from "../../api/names.ts";
import { duration, parseDuration, required } from "../../api/schema.ts";
import { pathId } from "../core/ids.ts";
import { defineResource } from "../core/resource.ts";
import { triggers } from "../shared/triggers.ts";

const inputs = z.object({
  app: required(appName, "App that the token gives access to: the `id` of an App. Changing it creates a new token.", {
    format: "reference",
  }),
  expiry: required(
    duration(),
    'Time for which the token is valid, for example `"720h"`; at most `"876000h"`. Changing it creates a new token.',
    { format: "duration" },
  ),
  rotationTriggers: triggers("a new token is created"),
});

const outputs = z.object({
  tokenId: required(z.string(), "Random name of the token in the state; the service does not know it."),
  token: required(z.string(), "The token. The service returns it only once; the state stores it as a secret.", {
    secret: true,
  }),
  expiresAt: required(
    z.string(),
    "RFC 3339 time at which the token expires at the latest. It is approximate, because it is computed with this computer's clock. A token never outlives the token that created it.",
  ),
});

export const deployToken = defineResource({
  name: "DeployToken",
  summary: "An access token for only one App.",
  description:
    "The service has no operation that shows, lists or revokes a token. Changing an input creates a new token. The old one works until it expires, even if its resource is deleted, so choose a short `expiry`. After `expiresAt`, a refresh reports the token as deleted, and the next up creates a new one. Only a refresh (`pulumi up --refresh`) notices the expiry.",
  inputs,
  outputs,
  // Random: nothing derived from the token may be an id, because ids are public.
  id: pathId("app", "tokenId"),
  unlisted: "the service does not list tokens",
  noImport: "the service shows a token only once, when it is created; leave the import out, and up creates a new one",
  replaceOn: ["app", "expiry", "rotationTriggers"],
  validate: ({ expiry }) =>
    expiry !== undefined && nanoseconds(expiry) === 0 ? [{ path: ["expiry"], message: "must be longer than 0s" }] : [],

  async create({ inputs: { app, expiry }, api }) {
    const expiresAt = timeIn(api.clock.now() + nanoseconds(expiry) / 1e6);
    const { token } = await api.apps.createDeployToken({ appName: app, body: { expiry } });
    return { app, tokenId: randomBytes(8).toString("hex"), token, expiresAt };
  },

  async read({ id, state, api }) {
    const { token = "", expiresAt = "" } = state ?? {};
    // The token exists as long as its App, until it expires.
    await api.apps.get({ appName: id.app });
    if (api.clock.now() >= Date.parse(expiresAt)) return undefined;
    return { ...state, tokenId: id.tokenId, token, expiresAt };
  },

  // Every input replaces: there is nothing to send.
  update: ({ id, old }) => Promise.resolve({ ...old, tokenId: id.tokenId }),

  delete({ id, state, warn }) {
    warn(
      `the deploy token ${id.app}/${id.tokenId} cannot be revoked; it is forgotten here and works until it expires, ${state.expiresAt ?? "at an unknown time"}`,
    );
    return Promise.resolve();
  },
});

const nanoseconds = (text: string): number => parseDuration(text) ?? 0;

/** RFC 3339; a time beyond the latest representable one becomes that one. */
const timeIn = (milliseconds: number): string => new Date(Math.min(milliseconds, 253_402_300_799_000)).toISOString();
