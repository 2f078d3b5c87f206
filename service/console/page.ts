// The page of the console and its files, as the build has written them.
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { weightOf } from "../http/accept.ts";
import { refuse } from "../refusal.ts";
import { builtFile } from "./built.ts";

const types: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

interface File {
  readonly whole: Buffer;
  readonly compressed: Buffer;
  readonly tag: string;
}

const files = new Map<string, File>();

function fileFor(name: string): File | undefined {
  const known = files.get(name);
  if (known) return known;
  const path = /^[\w-]+\.(?:js|css|svg)$/.test(name) ? builtFile(join("page", name)) : undefined;
  if (path === undefined) return undefined;
  const whole = readFileSync(path);
  const file = { whole, compressed: gzipSync(whole, { level: 9 }), tag: `"${hash("sha256", whole).slice(0, 16)}"` };
  files.set(name, file);
  return file;
}

/** Nothing comes from another host, no script or style stands in the page, and no other page shows this one. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Machines Control Service</title>
<link rel="icon" href="/console/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/console/assets/app.css">
<script type="module" src="/console/assets/app.js"></script>
</head>
<body><div id="app"></div><noscript>The console needs JavaScript. <a href="/docs">The documentation of the API</a> does not.</noscript></body>
</html>
`;

/** Sends the page, whichever view its address names. */
export const sendPage = (reply: FastifyReply): FastifyReply =>
  reply
    .type("text/html; charset=utf-8")
    .header("content-security-policy", policy)
    .header("referrer-policy", "no-referrer")
    .header("x-content-type-options", "nosniff")
    .header("cache-control", "no-cache")
    .send(html);

function sendFile(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { file: name } = request.params as { file: string };
  const file = fileFor(name);
  if (!file) throw refuse(404, "no such file");
  const { "accept-encoding": encodings, "if-none-match": known = "" } = request.headers;
  const isCompressed = weightOf("gzip", encodings ?? "") > 0;
  reply
    .type(types[name.split(".").at(-1) ?? ""] ?? "application/octet-stream")
    .header("etag", file.tag)
    .header("x-content-type-options", "nosniff")
    .header("cache-control", "no-cache")
    .header("vary", "accept-encoding");
  // A proxy that compressed it has made the tag weak.
  if (known.split(",").some((tag) => tag.trim().replace(/^W\//, "") === file.tag)) return reply.status(304).send();
  if (isCompressed) reply.header("content-encoding", "gzip");
  return reply.send(isCompressed ? file.compressed : file.whole);
}

/** Adds the routes of the page. They need no session: what they show is the same for everyone. */
export function addPage(app: FastifyInstance): void {
  const open = { config: { open: true as const, unrecorded: true as const } };
  for (const path of ["/console", "/console/*"]) app.get(path, open, (_request, reply) => sendPage(reply));
  app.get("/console/assets/:file", open, sendFile);
  // The page is for views; a program that asks for something else must not take it for an answer.
  for (const path of ["/console/api", "/console/api/*", "/console/assets", "/console/assets/*"])
    app.get(path, open, () => {
      throw refuse(404, "no such route");
    });
}
