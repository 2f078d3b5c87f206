// What a deleted App leaves in a cluster: nothing, so that the next one of its name has all that it needs.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { kubernetesRuntime } from "../../service/runtime/kubernetes/index.ts";
import { annotations } from "../../service/runtime/kubernetes/names.ts";
import { currentCertificate } from "../support/certificates.ts";
import { fakeCluster } from "../support/fakeCluster.ts";
import { afterThisTest } from "../support/leftovers.ts";
import { startService } from "../support/startService.ts";
import { caller } from "./client.ts";

const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 80, handlers: ["http"] }] }];
const kinds = ["Service", "Ingress", "PodDisruptionBudget"];

/** A service on a fake cluster, which can be started again with the same data. */
async function onFakeCluster() {
  const cluster = await fakeCluster("ams");
  const data = mkdtempSync(join(tmpdir(), "machines-removal-"));
  afterThisTest(() => rmSync(data, { recursive: true }));
  const start = async () => startService({ data, runtime: await kubernetesRuntime({ drainMs: 0 }) });
  let service = await start();
  afterThisTest(() => service.close());
  const call: ReturnType<typeof caller> = (...request) => caller(service.url, service.token)(...request);
  return {
    cluster,
    call,
    /** Starts the service again, after something has happened without it. */
    restart: async (meanwhile: () => void) => {
      await service.close();
      meanwhile();
      service = await start();
    },
    /** Creates an App with two Machines and a hostname; its id. */
    create: async (app: string): Promise<string> => {
      expect((await call("POST", "/apps", { name: app, org_slug: "personal" })).status).toBe(201);
      const hostname = `${app}.example.com`;
      const certificate = currentCertificate({ hosts: [hostname], commonName: "Test Authority" });
      const uploaded = await call("POST", `/apps/${app}/certificates/custom`, { hostname, ...certificate });
      expect(uploaded.status).toBe(201);
      const machine = { region: "ams", config: { image: "example/app:1", services } };
      for (let i = 0; i < 2; i++)
        expect((await call("POST", `/apps/${app}/machines`, machine)).body.id).toBeTypeOf("string");
      return (await call("GET", `/apps/${app}`)).body.id;
    },
    /** The App of each object, by kind and name. */
    owners: (): Readonly<Record<string, string | undefined>> =>
      Object.fromEntries(
        kinds.flatMap((kind) =>
          cluster
            .all(kind)
            .map(({ metadata }) => [`${kind} ${metadata.name}`, metadata.annotations?.[annotations.app]]),
        ),
      ),
    tlsKeys: (): number => cluster.all("Secret").filter(({ metadata }) => metadata.name?.startsWith("tls-")).length,
  };
}

/** What the cluster has for Apps, by their names. */
const ownersOf = (apps: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(apps).flatMap(([app, id]) => kinds.map((kind) => [`${kind} ${app}`, id])));

test("a deleted App leaves nothing, while another App keeps their network", async () => {
  const { call, create, owners, tlsKeys } = await onFakeCluster();
  const [shop, other] = [await create("shop"), await create("other")];
  await expect.poll(owners).toEqual(ownersOf({ shop, other }));
  expect(tlsKeys()).toBe(2);
  expect((await call("DELETE", "/apps/shop?force=true")).status).toBe(202);
  await expect.poll(owners).toEqual(ownersOf({ other }));
  expect(tlsKeys()).toBe(1);
  const again = await create("shop");
  await expect.poll(owners).toEqual(ownersOf({ shop: again, other }));
  expect(tlsKeys()).toBe(2);
});

test("an App takes over what a deleted one of its name has left", async () => {
  const { cluster, create, owners, restart, tlsKeys } = await onFakeCluster();
  const shop = await create("shop");
  await expect.poll(owners).toEqual(ownersOf({ shop }));
  await restart(() => {
    for (const kind of kinds) cluster.annotate(kind, { [annotations.app]: "deleted" });
  });
  await expect.poll(owners).toEqual(ownersOf({ shop }));
  await expect.poll(tlsKeys).toBe(1);
});
