// A registry of the tests: the part of the distribution API that an engine needs to fetch an image, behind basic authentication.
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { extract } from "tar-stream";
import { afterThisTest } from "../support/leftovers.ts";
import { docker } from "./runtimes.ts";

const types = {
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
};

/** The label of images by the registry that they are from. */
const labelOf = "test.registry";

const digestOf = (bytes: Buffer): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

/** What an engine has of an image: its configuration and its layers, which are tar archives. */
interface Saved {
  readonly config: { readonly config: object; readonly rootfs: object };
  readonly layers: readonly Buffer[];
}

/** An image of the engine, as `docker save` writes it. */
async function save(name: string): Promise<Saved> {
  const files = new Map<string, Buffer>();
  const archive = (await docker.getImage(name).get()).pipe(extract());
  for await (const entry of archive) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of entry) chunks.push(chunk as Uint8Array);
    files.set(entry.header.name, Buffer.concat(chunks));
  }
  const file = (path: string): Buffer => files.get(path) ?? Buffer.alloc(0);
  const [{ Config, Layers }] = JSON.parse(file("manifest.json").toString()) as [
    { readonly Config: string; readonly Layers: readonly string[] },
  ];
  return { config: JSON.parse(file(Config).toString()) as Saved["config"], layers: Layers.map(file) };
}

/** A running registry. */
export interface Registry {
  /** Its name in references of images: `127.0.0.1:<port>`. */
  readonly address: string;
  /** Adds an image with the contents of one of the engine's, and this label. Returns its digest. */
  push(reference: string, name: string, label: string): Promise<string>;
  /** From now on it refuses the configurations and layers of its images. An engine does not repeat such a request. */
  denyBlobs(): void;
}

/** Starts a registry on this computer, for `user:password`. */
export async function startRegistry(credentials: string): Promise<Registry> {
  const blobs = new Map<string, { readonly type: string; readonly bytes: Buffer }>();
  const tags = new Map<string, string>();
  const add = (bytes: Buffer, type: string) => {
    const digest = digestOf(bytes);
    blobs.set(digest, { type, bytes });
    return { mediaType: type, digest, size: bytes.length };
  };
  let isDenied = false;
  const expected = `Basic ${Buffer.from(credentials).toString("base64")}`;
  const server = createServer(({ url = "", method, headers: { authorization } }, answer) => {
    const refuse = (status: number, code: string): void =>
      void answer.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ errors: [{ code }] }));
    if (authorization !== expected) {
      answer.setHeader("www-authenticate", 'Basic realm="test"');
      return refuse(401, "UNAUTHORIZED");
    }
    if (url === "/v2/") return void answer.end("{}");
    const [, repository = "", kind, reference = ""] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(url) ?? [];
    const digest = tags.get(`${repository}:${reference}`) ?? reference;
    const blob = blobs.get(digest);
    if (isDenied && kind === "blobs") return refuse(403, "DENIED");
    if (!blob) return refuse(404, kind === "manifests" ? "MANIFEST_UNKNOWN" : "BLOB_UNKNOWN");
    answer.writeHead(200, {
      "content-type": blob.type,
      "content-length": blob.bytes.length,
      "docker-content-digest": digest,
    });
    answer.end(method === "HEAD" ? undefined : blob.bytes);
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  afterThisTest(async () => {
    server.close();
    server.closeAllConnections();
    await removeImagesOf(address);
  });
  return {
    address,
    denyBlobs: () => void (isDenied = true),
    push: async (reference, name, label) => {
      const { config, layers } = await save(name);
      const labelled = { ...config, config: { ...config.config, Labels: { [labelOf]: address, "test.image": label } } };
      const manifest = {
        schemaVersion: 2,
        mediaType: types.manifest,
        config: add(Buffer.from(JSON.stringify(labelled)), types.config),
        layers: layers.map((layer) => add(gzipSync(layer), types.layer)),
      };
      const { digest } = add(Buffer.from(JSON.stringify(manifest)), types.manifest);
      tags.set(reference, digest);
      return digest;
    },
  };
}

/** Removes what the engine has fetched from a registry. */
async function removeImagesOf(address: string): Promise<void> {
  for (const { Id } of await docker.listImages({ filters: { label: [`${labelOf}=${address}`] } }))
    await docker.getImage(Id).remove({ force: true });
}
