// Access tokens that are good for one App alone (docs/interface.md#deploy-tokens).
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { appName } from "../../api/names.ts";
import { duration, parseDuration, required } from "../../api/schema.ts";
import { pathId } from "../core/ids.ts";
import { defineResource } from "../core/resource.ts";
import { triggers } from "../shared/triggers.ts";

const inputs = z.object({
  app: required(appName, "App the token is good for: the `id` of an App. Changing it makes a new token.", {
    format: "reference",
  }),
  expiry: required(
    duration(),
    'Time the token is good for, for example `"720h"`; at most `"876000h"`. Changing it makes a new token.',
    { format: "duration" },
  ),
  rotationTriggers: triggers("a new token is made"),
});

const outputs = z.object({
  tokenId: required(z.string(), "Random name of the token in the state; the service does not know it."),
  token: required(z.string(), "The token. The service shows it once, and it is kept as a secret.", { secret: true }),
  expiresAt: required(
    z.string(),
    "RFC 3339 time at which the token expires at the latest. Approximate: counted by this computer's clock from the creation, and no token outlives the one it was made with.",
  ),
});

export const deployToken = defineResource({
  name: "DeployToken",
  summary: "An access token that is good for one App alone.",
  description:
    "The service has no operation that shows, lists or revokes a token. It is made anew when an input changes; the old one, also one whose resource is deleted, goes on working until it expires: choose a short `expiry`. Once `expiresAt` is over, a refresh finds it gone, and the next up makes a new one; without a refresh (`pulumi up --refresh`) nobody notices.",
  inputs,
  outputs,
  // By chance: nothing that is made from the token may stand where everybody reads it.
  id: pathId("app", "tokenId"),
  unlisted: "the service does not list tokens",
  noImport: "the service shows a token once, when it is made; leave the import out, and up makes a new one",
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
    // As long as its App is there, so is the token, until it expires.
    await api.apps.get({ appName: id.app });
    if (api.clock.now() >= Date.parse(expiresAt)) return undefined;
    return { ...state, tokenId: id.tokenId, token, expiresAt };
  },

  // Every input replaces: there is nothing to send.
  update: ({ id, old }) => Promise.resolve({ ...old, tokenId: id.tokenId }),

  delete({ id, state, warn }) {
    warn(
      `the deploy token ${id.app}/${id.tokenId} cannot be revoked; it is forgotten here and works until it expires, ${state.expiresAt ?? "nobody knows when"}`,
    );
    return Promise.resolve();
  },
});

const nanoseconds = (text: string): number => parseDuration(text) ?? 0;

/** RFC 3339; a time beyond what can be told is the last one that can. */
const timeIn = (milliseconds: number): string => new Date(Math.min(milliseconds, 253_402_300_799_000)).toISOString();
