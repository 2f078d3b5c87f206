// Certificates from cert-manager, whose own controllers issue them. The service has the rights of its manifest, and no others.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import {
  CustomObjectsApi,
  KubeConfig,
  PatchStrategy,
  setHeaderOptions,
  type KubernetesObject,
} from "@kubernetes/client-node";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { selectorOf } from "../../service/runtime/kubernetes/names.ts";
import { storeFile } from "../../service/store/database.ts";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { certManagerProgram, startCertManager } from "../../tools/setup/certManager.mjs";
import { caller, requestsOfWeb } from "../service/client.ts";
import { folder, foreground, released } from "../service/command.ts";
import { kill } from "../support/processes.ts";
import { clientsOf } from "./clusters.ts";
import { asManifest } from "./rights.ts";

const namespace = "machines-service-certificates";
const where = { group: "cert-manager.io", version: "v1", namespace, plural: "certificates" };
const options = ["--runtime", "kubernetes", "--certificates", "cert-manager", "--dns", "simulated"];
const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 80, handlers: ["http"] }] }];

type Certificate = KubernetesObject & { status?: { conditions?: { type: string; status: string }[] } };

describe("certificates from cert-manager", () => {
  let program: string | undefined;
  let started: Awaited<ReturnType<typeof startCertManager>> | undefined;
  beforeAll(async () => {
    const found = await certManagerProgram(process.env);
    program = found.program;
    if (program === undefined) leaveOut("certificates from cert-manager", found.reason ?? "no program");
    else started = await startCertManager(inject("kubeconfig"), program);
  });
  afterAll(() => started?.remove());
  beforeEach(({ skip }) => skip(program === undefined));

  /** A service with the rights of its manifest. */
  async function start(clusterIssuer: string, data = folder()) {
    const KUBECONFIG = await asManifest("--cluster-issuer", clusterIssuer);
    const service = await foreground(data, [...options, "--cluster-issuer", clusterIssuer], { KUBECONFIG });
    const app = requestsOfWeb(caller(service.url, service.token));
    const { core, networking } = clientsOf(inject("kubeconfig"));
    const config = new KubeConfig();
    config.loadFromFile(inject("kubeconfig"));
    const custom = config.makeApiClient(CustomObjectsApi);
    const labelSelector = selectorOf(readFileSync(join(data, "data-id"), "utf8").trim());
    const shown = async (hostname: string) => (await app.call("GET", `/apps/web/certificates/${hostname}`)).body;
    return {
      ...app,
      pid: service.pid,
      data,
      shown,
      custom,
      request: (hostname: string) => app.call("POST", "/apps/web/certificates/acme", { hostname }),
      /** The certificate that the ingress controller serves. */
      served: async (): Promise<string | undefined> => {
        const { items } = await core.listSecretForAllNamespaces({ labelSelector });
        const all = items.filter(
          ({ type, metadata }) => type === "kubernetes.io/tls" && metadata?.namespace !== namespace,
        );
        return all[0]?.data?.["tls.crt"];
      },
      /** The Certificates and Secrets of cert-manager, by kind and id. */
      left: async (): Promise<string[]> => {
        const secrets = await core.listNamespacedSecret({ namespace, labelSelector });
        const { items } = (await custom.listNamespacedCustomObject({ ...where, labelSelector })) as {
          items: Certificate[];
        };
        return [
          ...items.map(({ metadata }) => `Certificate ${metadata?.uid}`),
          ...secrets.items.map(({ metadata }) => `Secret ${metadata?.name}`),
        ];
      },
      ingresses: async () => (await networking.listIngressForAllNamespaces({ labelSelector })).items,
    };
  }

  test("a hostname gets one, which is renewed, kept over a kill, restored, and removed with it", async () => {
    const app = await start("tests");
    const hostname = "managed.example.com";
    await app.call("POST", "/apps", { name: "web", org_slug: "personal" });
    await app.machine({ services });
    expect((await app.request(hostname)).status).toBe(201);
    await expect.poll(async () => (await app.shown(hostname)).status).toBe("active");
    const { certificates } = await app.shown(hostname);
    expect(certificates).toMatchObject([{ source: "fly", issuer: expect.stringContaining("Test Authority") }]);
    await expect.poll(app.served).toBeDefined();
    expect(await app.left()).toHaveLength(2);
    // The key is sealed in the store.
    const db = new DatabaseSync(storeFile(app.data), { readOnly: true });
    const row = db.prepare("SELECT issued_key, issued_by FROM hostnames").get() as {
      issued_key: Uint8Array;
      issued_by: string;
    };
    db.close();
    expect(Buffer.from(row.issued_key).toString("latin1")).not.toContain("PRIVATE KEY");
    expect(row.issued_by).toBe("cert-manager/tests");
    // cert-manager renews it, as `cmctl renew` asks for that, while the service is down.
    const old = await app.served();
    kill([app.pid]);
    await released(app.data);
    const { items } = (await app.custom.listNamespacedCustomObject(where)) as { items: Certificate[] };
    const [found] = items;
    const issuing = {
      type: "Issuing",
      status: "True",
      reason: "Manual",
      message: "test",
      lastTransitionTime: new Date(),
    };
    await app.custom.patchNamespacedCustomObjectStatus(
      {
        ...where,
        name: found?.metadata?.name ?? "",
        body: { status: { conditions: [...(found?.status?.conditions ?? []), issuing] } },
      },
      setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
    );
    const again = await start("tests", app.data);
    await expect.poll(again.served).not.toBe(old);
    expect((await again.shown(hostname)).status).toBe("active");
    // Others remove it.
    const before = await again.left();
    await again.custom.deleteNamespacedCustomObject({ ...where, name: found?.metadata?.name ?? "" });
    await expect.poll(async () => (await again.left()).filter((one) => !before.includes(one))).toHaveLength(1);
    await again.call("DELETE", `/apps/web/certificates/${hostname}`);
    await expect.poll(again.left).toEqual([]);
    await expect.poll(again.ingresses).toEqual([]);
    await again.call("DELETE", "/apps/web?force=true");
    kill([again.pid]);
  });

  test("an issuer that does not exist is reported, and issues once it does", async () => {
    const app = await start("later");
    const hostname = "waiting.example.com";
    await app.call("POST", "/apps", { name: "web", org_slug: "personal" });
    await app.request(hostname);
    const problems = async () => {
      await app.call("POST", `/apps/web/certificates/${hostname}/check`);
      return JSON.stringify((await app.shown(hostname)).validation_errors);
    };
    await expect.poll(problems).toContain("cert-manager has not issued it yet");
    expect((await app.shown(hostname)).status).toBe("pending_validation");
    const name = "later";
    const spec = { selfSigned: {} };
    await app.custom.createClusterCustomObject({
      ...{ group: where.group, version: where.version, plural: "clusterissuers" },
      body: { apiVersion: "cert-manager.io/v1", kind: "ClusterIssuer", metadata: { name }, spec },
    });
    await expect.poll(async () => (await app.shown(hostname)).status).toBe("active");
    await app.call("DELETE", "/apps/web?force=true");
    await expect.poll(app.left).toEqual([]);
    kill([app.pid]);
  });
});
