// An organization with something in every view.
import type { Call } from "../service/client.ts";

const fleet = (phase: string) => ({ "pulumi-fleet": "web", "pulumi-fleet-phase": phase });

/** The bodies of answers that must be a success. */
const sure =
  (call: Call) =>
  async (...args: Parameters<Call>) => {
    const { status, body, text } = await call(...args);
    if (status >= 300) throw new Error(`${args[0]} ${args[1]} gave ${status} ${text}`);
    return body;
  };

/** Creates the Apps `shop`, `mail` and `empty`, and a cluster. */
export async function fill(call: Call) {
  const ok = sure(call);
  for (const name of ["shop", "mail", "empty"]) await ok("POST", "/apps", { name, org_slug: "personal" });
  const ids: string[] = [];
  for (const [i, region] of ["ams", "fra", "iad", "ams", "fra", "iad"].entries()) {
    const config = {
      image: `registry.example/shop:${i < 4 ? "1.1" : "1.0"}`,
      env: { LOG: "info", DATABASE_PASSWORD: `first-${i}-hush` },
      metadata: fleet(i < 4 ? "serving" : "kept"),
      checks: { alive: { type: "http", port: 8080, path: "/" } },
      services: [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 80, handlers: ["http"] }] }],
    };
    ids.push((await ok("POST", "/apps/shop/machines", { name: `web-${region}-${i}`, region, config })).id);
  }
  const [first = "", second = ""] = ids;
  await ok("POST", `/apps/shop/machines/${ids[5]}/stop`, {});
  await ok("POST", `/apps/shop/machines/${ids[2]}/cordon`, {});
  const update = {
    config: {
      image: "registry.example/shop:1.2",
      env: { LOG: "debug", DATABASE_PASSWORD: "second-hush" },
      metadata: fleet("serving"),
      checks: { alive: { type: "http", port: 8080, path: "/" } },
    },
  };
  const urn = "urn:pulumi:prod::shop::machines:index:Machine::web";
  await ok("POST", `/apps/shop/machines/${first}`, update, { "pulumi-update": "update-1", "pulumi-urn": urn });
  await ok("POST", `/apps/shop/machines/${first}/lease`, { ttl: 300, description: "pulumi update" });
  const critical = {
    image: "mail:2",
    env: { MACHINES_SIMULATE: "checks:critical" },
    checks: { smtp: { type: "tcp", port: 25 } },
  };
  await ok("POST", "/apps/mail/machines", { name: "smtp", config: critical });
  await ok("POST", "/apps/shop/volumes", { name: "data", region: "ams", size_gb: 10 });
  await ok("POST", "/apps/shop/secrets/PASSWORD", { value: "hush-hush-value" });
  await ok("POST", "/apps/shop/secretkeys/signing/generate", { type: "hs256" });
  await ok("POST", "/apps/shop/ip_assignments", { type: "v6" });
  await ok("POST", "/apps/shop/certificates/acme", { hostname: "shop.example.com" });
  const { data } = await ok("POST", "/postgres", {
    name: "orders",
    region: "ams",
    plan: "basic",
    org_slug: "personal",
  });
  return { ids, first, second, cluster: String(data.id) };
}

/** Creates the App `broken` with a Machine that has failed after an update, one with a critical check, and one that runs well. */
export async function fillWithProblems(call: Call) {
  const ok = sure(call);
  await ok("POST", "/apps", { name: "broken", org_slug: "personal" });
  const machine = async (name: string, config: object): Promise<string> =>
    (await ok("POST", "/apps/broken/machines", { name, region: "ams", config })).id;
  const failed = await machine("worker", {
    image: "registry.example/worker:1",
    env: { LOG: "info", DATABASE_PASSWORD: "first-hush" },
  });
  await ok("POST", `/apps/broken/machines/${failed}`, {
    config: {
      image: "registry.example/worker:2",
      env: { LOG: "info", DATABASE_PASSWORD: "second-hush", MACHINES_SIMULATE: "exit:3" },
    },
  });
  const critical = await machine("api", {
    image: "registry.example/api:1",
    env: { MACHINES_SIMULATE: "checks:critical" },
    checks: { alive: { type: "http", port: 8080, path: "/" } },
  });
  return { failed, critical, good: await machine("good", { image: "registry.example/good:1" }) };
}
