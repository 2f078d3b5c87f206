// Unreachable or untrusted services (F22, F23): the client fails fast, with a clear error, and never bypasses the check.
import { createServer as createHttp, request as httpRequest, type Server } from "node:http";
import { createServer as createHttps } from "node:https";
import { connect, createServer as createTcp, type AddressInfo, type Server as TcpServer } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { httpTransport, type ProxyEnvironment } from "../../provider/client/transport.ts";
import { currentCertificate, type CertificateOptions, type IssuedCertificate } from "../support/certificates.ts";
import { jumpingClient } from "../support/jumpingClient.ts";
import { startService, type TestService } from "../support/startService.ts";
import { trust } from "../support/trust.ts";

const token = "s3cr3t-canary";
const regions = '{"regions":[],"nearest":"fra"}';

const servers: (Server | TcpServer)[] = [];
afterEach(async () => {
  await Promise.all(
    servers.splice(0).map((server) => {
      if ("closeAllConnections" in server) server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    }),
  );
});

async function listening(server: Server | TcpServer, host = "127.0.0.1"): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return (server.address() as AddressInfo).port;
}

/** What a client does with an endpoint: a read, and a create that must not be sent twice. */
async function tried(url: string, env: ProxyEnvironment = {}) {
  const transport = httpTransport(env);
  const { api, clock, sent } = jumpingClient({ url, token }, undefined, { transport });
  const failure = async (work: Promise<unknown>): Promise<Error & { code?: string }> =>
    work.then(
      () => new Error("it succeeded"),
      (error: unknown) => error as Error,
    );
  const read = await failure(api.platform.regions({}));
  const create = await failure(api.apps.create({ body: { name: "a", orgSlug: "personal" } }));
  await transport.close();
  for (const { message } of [read, create]) expect(message).not.toContain(token);
  return { read, create, sent, slept: clock.slept };
}

describe("F22 TLS", () => {
  const hosts = ["localhost"];
  const https = ({ fullchain, private_key }: IssuedCertificate) =>
    listening(
      createHttps({ cert: fullchain, key: private_key }, (_, response) => void response.end(regions)),
      "localhost",
    );
  // Self-issued, so that it can be trusted on its own.
  const own = (options: CertificateOptions = {}) =>
    currentCertificate({ hosts, commonName: "Test Authority", ...options });

  /** Both a read and a create are refused at once, on the only try, and no connection is left open. */
  const refused = ({ read, create, sent, slept }: Awaited<ReturnType<typeof tried>>, words: RegExp) => {
    for (const { message, code } of [read, create]) {
      expect(message).toMatch(words);
      expect(message).toMatch(/(GET|POST) https?:\/\/(localhost|127\.0\.0\.1):\d+\/v1\//);
      expect(message).not.toMatch(/may have taken effect|\n/);
      expect(code).toBe("configuration");
    }
    expect(sent).toHaveLength(2);
    expect(slept).toEqual([]);
  };

  test("F22 a self-signed certificate is refused, and the error says how to trust it", async () => {
    const port = await https(own());
    refused(
      await tried(`https://localhost:${port}`),
      /self-signed certificate \(DEPTH_ZERO_SELF_SIGNED_CERT\)\. .*NODE_EXTRA_CA_CERTS/,
    );
  });

  test("F22 a certificate of an unknown authority is refused in the same way", async () => {
    const port = await https(currentCertificate({ hosts, commonName: "leaf" }));
    refused(
      await tried(`https://localhost:${port}`),
      /unable to verify the first certificate \(UNABLE_TO_VERIFY_LEAF_SIGNATURE\)\. .*NODE_EXTRA_CA_CERTS/,
    );
  });

  test("F22 a trusted certificate works", async () => {
    const certificate = own();
    const port = await https(certificate);
    trust(certificate.fullchain);
    const transport = httpTransport({});
    const { api } = jumpingClient({ url: `https://localhost:${port}`, token }, undefined, { transport });
    expect((await api.platform.regions({})).nearest).toBe("fra");
    await transport.close();
  });

  test("F22 expired and not yet valid certificates are refused", async () => {
    const past = own({ from: new Date(0), until: new Date(Date.now() - 60_000) });
    const [old, young] = [await https(past), await https(own({ from: new Date(Date.now() + 3600_000) }))];
    refused(await tried(`https://localhost:${young}`), /certificate/);
    trust(past.fullchain);
    refused(await tried(`https://localhost:${old}`), /certificate has expired.*Renew the service's certificate/);
  });

  test("F22 a certificate for another host is refused", async () => {
    const other = own({ hosts: ["machines.example.com"] });
    const port = await https(other);
    trust(other.fullchain);
    refused(
      await tried(`https://localhost:${port}`),
      /localhost.*machines\.example\.com.*Use a name in the endpoint that the service's certificate is for/,
    );
  });

  test("F22 TLS to a plain HTTP port is refused", async () => {
    const port = await listening(createHttp((_, response) => void response.end(regions)));
    refused(await tried(`https://127.0.0.1:${port}`), /wrong version number.*begins with http:\/\//);
  });

  test("F22 plain HTTP to a port that answers with a TLS alert is refused", async () => {
    const port = await listening(
      createTcp((socket) => socket.on("data", () => socket.end(Buffer.from([0x15, 3, 1, 0, 2, 2, 70])))),
    );
    refused(
      await tried(`http://127.0.0.1:${port}`),
      /speaks TLS, but the request did not use it\. .*begins with https:\/\//,
    );
  });

  test("F22 plain HTTP to a TLS port that only closes: a read reports the likely cause and ends", async () => {
    const port = await https(own());
    const { read, create, sent } = await tried(`http://localhost:${port}`);
    expect(read.message).toMatch(/other side closed.*If it speaks TLS, its endpoint begins with https:\/\//);
    expect(create).toMatchObject({ code: "ambiguous" });
    expect(sent.filter((one) => one.startsWith("platform"))).toHaveLength(6);
    expect(sent.filter((one) => one.startsWith("apps"))).toHaveLength(1);
  });
});

describe("F23 names, addresses and proxies", () => {
  let service: TestService;
  beforeAll(async () => (service = await startService({ allowHosts: ["machines.test"] })));
  afterAll(() => service.close());

  test("F23 a host without an address is retried, then named in the error", async () => {
    const { read, create, sent } = await tried("http://no-such-host.invalid:4280");
    for (const { message } of [read, create])
      expect(message).toMatch(
        /http:\/\/no-such-host\.invalid:4280\/v1\/.*(ENOTFOUND|EAI_AGAIN).*Is the host's name in the endpoint right\?/,
      );
    expect(create).toMatchObject({ code: "network" });
    expect(sent).toHaveLength(12);
  });

  test.each(["127.0.0.1", "[::1]", "localhost"])(
    "F23 a closed port of %s is retried, then named in the error",
    async (host) => {
      const port = await listening(createTcp());
      await new Promise((resolve) => servers.pop()?.close(resolve));
      const { read, create } = await tried(`http://${host}:${port}`);
      for (const { message } of [read, create]) {
        expect(message).toContain(`http://${host}:${port}/v1/`);
        expect(message).toMatch(/ECONNREFUSED.*Is the endpoint right, and does the service run\?/);
      }
      expect(create).toMatchObject({ code: "network" });
    },
  );

  test("F23 an IPv6-only address is reached", async () => {
    const port = await listening(
      createHttp((_, response) => void response.end(regions)),
      "::1",
    );
    const { api } = jumpingClient({ url: `http://[::1]:${port}`, token });
    expect((await api.platform.regions({})).nearest).toBe("fra");
  });

  /** A proxy that forwards requests for any host to our service, and records them. */
  async function startProxy(): Promise<{ url: string; asked: string[]; authorizations: (string | undefined)[] }> {
    const asked: string[] = [];
    const authorizations: (string | undefined)[] = [];
    const { hostname, port } = new URL(service.url);
    const server = createHttp((incoming, response) => {
      asked.push(`${incoming.method ?? ""} ${incoming.url ?? ""}`);
      authorizations.push(incoming.headers["proxy-authorization"]);
      const { pathname, search } = new URL(incoming.url ?? "");
      const { method, headers } = incoming;
      const outgoing = httpRequest({ hostname, port, method, headers, path: pathname + search }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      incoming.pipe(outgoing);
    });
    server.on("connect", (incoming, client, head) => {
      asked.push(`CONNECT ${incoming.url ?? ""}`);
      authorizations.push(incoming.headers["proxy-authorization"]);
      const tunnel = connect(Number(port), hostname, () => {
        client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
        tunnel.write(head);
        client.pipe(tunnel).pipe(client);
      });
      for (const socket of [client, tunnel]) socket.on("error", () => tunnel.destroy());
    });
    return { url: `http://127.0.0.1:${await listening(server)}`, asked, authorizations };
  }
  const ask = async (env: ProxyEnvironment, url = "http://machines.test") => {
    const transport = httpTransport(env);
    const { api } = jumpingClient({ url, token: service.token }, undefined, {
      transport,
      settings: { retries: "0" },
    });
    try {
      return await api.platform.regions({});
    } finally {
      await transport.close();
    }
  };

  test.each(["HTTP_PROXY", "http_proxy"])("F23 %s makes requests use the proxy", async (name) => {
    const proxy = await startProxy();
    const { nearest } = await ask({ [name]: proxy.url.replace("http://", "http://user:pa%24s@") });
    expect(nearest).toBeDefined();
    expect(proxy.asked).toEqual(["GET http://machines.test/v1/platform/regions"]);
    expect(proxy.authorizations).toEqual([`Basic ${Buffer.from("user:pa$s").toString("base64")}`]);
  });

  test("F23 HTTPS_PROXY gets a tunnel request, and the certificate is still checked", async () => {
    const proxy = await startProxy();
    // The server behind the tunnel has no TLS: the handshake fails there, and not at the proxy.
    await expect(ask({ HTTPS_PROXY: proxy.url }, "https://machines.test")).rejects.toThrow(/wrong version number/);
    expect(proxy.asked).toEqual(["CONNECT machines.test:443"]);
  });

  test.each(["machines.test", ".test", "*", "other,machines.test:80"])(
    "F23 NO_PROXY=%s bypasses the proxy",
    async (hosts) => {
      const proxy = await startProxy();
      await expect(ask({ HTTP_PROXY: proxy.url, NO_PROXY: hosts })).rejects.toThrow(
        /machines\.test.*(ENOTFOUND|EAI_AGAIN)/,
      );
      expect(proxy.asked).toEqual([]);
    },
  );

  test("F23 requests to this computer never use a proxy", async () => {
    const proxy = await startProxy();
    await ask({ HTTP_PROXY: proxy.url }, service.url);
    expect(proxy.asked).toEqual([]);
  });

  test("F23 the error names a proxy that is missing, refuses or is not a proxy, without its password", async () => {
    const refusing = createHttp((_, response) => void response.writeHead(407).end());
    refusing.on("connect", (_, socket) => socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"));
    const port = await listening(refusing);
    const [gone, denied] = ["http://user:canary@127.0.0.1:1", `http://user:canary@127.0.0.1:${port}`];
    for (const [env, url, words] of [
      [{ HTTP_PROXY: gone }, "http://machines.test", /ECONNREFUSED 127\.0\.0\.1:1/],
      [{ HTTP_PROXY: denied }, "http://machines.test", /Proxy Authentication Required \(407\)/],
      [{ HTTPS_PROXY: denied }, "https://machines.test", /Proxy response \(407\)/],
      [{ HTTP_PROXY: "user:canary@nowhere" }, "http://machines.test", /HTTP_PROXY is no URL of a proxy/],
    ] as const) {
      const error = await ask(env, url).catch((reason: unknown) => reason as Error);
      const message = error instanceof Error ? error.message : "it succeeded";
      expect(message).toMatch(words);
      expect(message).toContain(`no answer from GET ${url}/v1/platform/regions`);
      expect(message).toMatch(/Requests go by HTTP_PROXY or HTTPS_PROXY/);
      expect(message).not.toContain("canary");
    }
  });
});
