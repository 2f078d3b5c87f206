// Requests of a leader to a container engine: changes wait until its leadership is certain.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { dockerRuntime } from "../../service/runtime/docker/index.ts";
import type { RuntimeHost } from "../../service/runtime/runtime.ts";
import { withResolvers } from "../../service/withResolvers.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { startService } from "../support/startService.ts";
import { caller, requestsOfWeb } from "./client.ts";

/** A container of a Machine that the service does not know. */
const unknown = { Id: "made-later", Labels: { "machines-service.machine": "unknown" } };

/** A service that is not certain to lead, on an engine with these containers. */
async function uncertain(containers: readonly object[]) {
  const changes: string[] = [];
  const [asked, certain] = [withResolvers(), withResolvers()];
  const server = createServer(({ method = "", url = "" }, response) => {
    const path = url.replace(/\?.*/, "");
    if (method !== "GET") {
      changes.push(`${method} ${path}`);
      // Without the wait, this comes first.
      asked.resolve();
    }
    if (path === "/events") return response.flushHeaders();
    const answers: Record<string, unknown> = {
      "/info": {},
      "/containers/json": changes.length > 0 ? [] : containers,
      "/networks": [],
      "/volumes": { Volumes: [] },
    };
    return response.setHeader("content-type", "application/json").end(JSON.stringify(answers[path] ?? {}));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { DOCKER_HOST: before } = process.env;
  process.env["DOCKER_HOST"] = `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const runtime = await dockerRuntime();
  if (before === undefined) delete process.env["DOCKER_HOST"];
  else process.env["DOCKER_HOST"] = before;
  let isCertain = false;
  const unsure = {
    get: () => {
      if (isCertain) return undefined;
      asked.resolve();
      return certain.promise;
    },
  };
  const service = await startService({
    runtime: (host) => runtime(Object.create(host, { unsure }) as RuntimeHost),
  });
  afterThisTest(async () => {
    await service.close();
    server.close();
    server.closeAllConnections();
  });
  return {
    changes,
    service,
    /** Resolves when it wants to change something. */
    asked: asked.promise,
    becomesCertain: () => {
      isCertain = true;
      certain.resolve();
    },
  };
}

test("a member whose lease may have ended removes no container before it is certain to lead", async () => {
  const { changes, asked, becomesCertain } = await uncertain([unknown]);
  await asked;
  expect(changes).toEqual([]);
  becomesCertain();
  await expect.poll(() => changes).toEqual(["DELETE /containers/made-later"]);
});

test("a member that is not certain to lead closes, and does not send what waited", async () => {
  const { service, changes, asked } = await uncertain([]);
  const { call, volume } = requestsOfWeb(caller(service.url, service.token));
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  await volume();
  await asked;
  await service.close();
  expect(changes).toEqual([]);
});
