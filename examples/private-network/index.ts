// A public gateway in front of an API and a cache, which have no address: only the Machines of this network reach them.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const image = settings.get("image") ?? "registry.example.com/shop:1.0.0";

// Each stack has its own network, so that the Machines of a test never reach those of production.
const network = `shop-${pulumi.getStack()}`;

const cache = new machines.App("shop-cache", { network });

const cacheMachine = new machines.Machine("cache", {
  app: cache.id,
  region: "ams",
  config: {
    image: settings.get("cacheImage") ?? "docker.io/valkey/valkey:8.1-alpine",
    checks: { alive: { type: "tcp", port: 6379, interval: "15s", timeout: "2s" } },
  },
});

const api = new machines.App("shop-api", { network });

// Without services, the proxy sends nothing to these Machines.
const apiFleet = new machines.Fleet(
  "api",
  {
    app: api.id,
    regions: { ams: 2 },
    config: {
      image,
      init: { cmd: ["api"] },
      env: { CACHE_URL: pulumi.interpolate`redis://${cache.name}.internal:6379` },
      checks: { alive: { type: "http", port: 8080, path: "/healthz", interval: "15s", timeout: "2s" } },
    },
  },
  { dependsOn: cacheMachine },
);

const gateway = new machines.App("shop", { network });

const gatewayFleet = new machines.Fleet(
  "gateway",
  {
    app: gateway.id,
    regions: { ams: 2 },
    config: {
      image,
      init: { cmd: ["gateway"] },
      // The name has the addresses of all Machines of the API.
      env: { API_URL: pulumi.interpolate`http://${api.name}.internal:8080` },
      services: [
        {
          protocol: "tcp",
          internalPort: 8080,
          ports: [
            { port: 80, handlers: ["http"], forceHttps: true },
            { port: 443, handlers: ["tls", "http"] },
          ],
          checks: [{ type: "http", path: "/healthz", interval: "15s", timeout: "2s" }],
        },
      ],
    },
  },
  { dependsOn: apiFleet },
);

const ipv4 = new machines.IpAssignment("ipv4", { app: gateway.id, type: "shared_v4" });
const ipv6 = new machines.IpAssignment("ipv6", { app: gateway.id, type: "v6" });

export const apps = { gateway: gateway.name, api: api.name, cache: cache.name };
export const addresses = [ipv4.ip, ipv6.ip];
export const gatewayMachines = gatewayFleet.machines.apply((all) => all.map(({ name }) => name));
