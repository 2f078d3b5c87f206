// The keys of stacks, as HashiCorp Vault keeps them. With a passphrase, which Pulumi makes slow to guess, each command computes for
// half a second before it begins.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

let url: Promise<string> | undefined;

/** The secrets provider of a stack, and the environment in which Pulumi reaches it. One vault serves all stacks of this process. */
export async function vault(): Promise<{ readonly provider: string; readonly env: Readonly<Record<string, string>> }> {
  url ??= start();
  return { provider: "hashivault://stacks", env: { VAULT_SERVER_URL: await url, VAULT_SERVER_TOKEN: "test" } };
}

/** Vault's transit engine, without a key of its own: it only keeps the stacks' keys out of their plain form. */
function start(): Promise<string> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request
      .on("data", (part: Buffer) => parts.push(part))
      .on("end", () => {
        const { plaintext, ciphertext } = JSON.parse(Buffer.concat(parts).toString()) as Record<string, string>;
        const data = request.url?.includes("/encrypt/")
          ? { ciphertext: `vault:v1:${plaintext}` }
          : { plaintext: ciphertext?.replace("vault:v1:", "") };
        response.setHeader("content-type", "application/json").end(JSON.stringify({ data }));
      });
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
    server.unref();
  });
}
