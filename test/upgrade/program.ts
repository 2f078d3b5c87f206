// Uses most features, and is recorded with every version; see record.ts. `upgrade:changed` changes most of it.
// oxlint-disable no-new -- a resource is declared by constructing it
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const config = new pulumi.Config("upgrade");
const service = new pulumi.Config("machines");
const changed = config.getBoolean("changed") ?? false;
const image = config.get("image") ?? "registry.example.com/shop:1.0.0";
/** The recorded values, and their changed ones. */
const either = <T>(now: T, then: T): T => (changed ? then : now);

const password = pulumi.secret(either("hush-hush", "hushed-up"));
const base64 = (text: string): string => Buffer.from(text).toString("base64");

const named = new machines.App("named", { name: "upgrade-shop", forceDestroy: either(false, true) });
const generated = new machines.App(
  "Generated.App",
  { organization: "personal" },
  { customTimeouts: { create: "5m", update: "5m", delete: "5m" } },
);

// Values that the service or a default can decide are omitted.
const plainVolume = new machines.Volume("plain-volume", {
  app: generated.id,
  ...(changed ? { allowDataLoss: true } : {}),
});
const data = new machines.Volume("data", {
  app: named.id,
  name: "data",
  region: "ams",
  sizeGb: either(2, 3),
  encrypted: false,
  fstype: "ext4",
  snapshotRetention: either(7, 14),
  autoBackupEnabled: false,
  requireUniqueZone: false,
  allowDataLoss: either(false, true),
  restartOnExtend: either(true, false),
});

// Omitted values, and the same values written out.
const defaults = {
  guest: { cpuKind: "shared", cpus: 1, memoryMb: 256 },
  restart: { policy: "on-failure" },
  stopConfig: { signal: "SIGINT", timeout: "5000ms" },
  env: {},
  autoDestroy: false,
} as const;
const plain = new machines.Machine("plain", {
  app: generated.id,
  config: { image, ...(changed ? defaults : {}) },
});

const web = new machines.Machine(
  "web",
  {
    app: named.id,
    name: "web",
    region: "ams",
    waitForChecks: true,
    forceDestroy: either(true, false),
    config: {
      image: "registry.example.com/shop@sha256:8d3f7b6e1c5a49028f1e6d7c3b2a190817263544f5e6d7c8b9a0f1e2d3c4b5a6",
      env: {
        GREETING: either("hello", "hi"),
        "a.key[with]": '"quotes" and ünïcödé \u2028',
        EMPTY: "",
        PASSWORD: password,
        [either("GONE", "NEW")]: "here",
      },
      guest: { cpuKind: "shared", cpus: 2, memoryMb: either(512, 1024), kernelArgs: ["quiet"] },
      services: [
        {
          protocol: "tcp",
          internalPort: 8080,
          ports: [
            {
              port: 443,
              handlers: ["tls", "http"],
              tlsOptions: { alpn: ["h2", "http/1.1"], versions: ["TLSv1.3"], defaultSelfSigned: true },
              httpOptions: {
                compress: true,
                response: { headers: { "X-Served": "shop", "X-Not": false, "X-Many": ["a", "b"] }, pristine: false },
                replayCache: [{ pathPrefix: "/", ttlSeconds: 30, type: "cookie", name: "session" }],
              },
            },
            { port: 80, handlers: ["http"], forceHttps: either(true, false) },
            { startPort: 9000, endPort: 9010, proxyProtoOptions: { version: "v2" }, handlers: ["proxy_proto"] },
          ],
          concurrency: { type: "requests", softLimit: 50, hardLimit: either(100, 200) },
          autostart: true,
          autostop: either<"stop" | "suspend">("stop", "suspend"),
          minMachinesRunning: 1,
          checks: [
            {
              type: "http",
              interval: either("15s", "1m"),
              timeout: "2s",
              gracePeriod: "1500ms",
              method: "GET",
              path: "/health",
              headers: [{ name: "X-Check", values: ["1", "2"] }],
            },
          ],
        },
        { protocol: "udp", internalPort: 53, autostop: false },
      ],
      checks: {
        up: { type: "tcp", port: 8080, interval: "0.5m", timeout: "1000ms", kind: "readiness" },
        [either("gone", "new")]: { type: "tcp", port: 8081, interval: "30s", timeout: "2s" },
      },
      mounts: [{ volume: data.id, path: "/data", extendThresholdPercent: 80, addSizeGb: 1, sizeGbLimit: 10 }],
      restart: { policy: "on-failure", maxRetries: either(3, 5) },
      metadata: { role: "web", tier: either("one", "two") },
      files: [
        { guestPath: "/etc/shop/secret", rawValue: password.apply(base64), mode: 0o400 },
        { guestPath: "/etc/shop/plain", rawValue: base64(either("plain text", "another text")) },
      ],
      init: { cmd: ["serve", "--port", "8080"], swapSizeMb: 256 },
      metrics: { port: 9091, path: "/metrics" },
      statics: [{ guestPath: "/srv/static", urlPrefix: "/static" }],
      stopConfig: { signal: "SIGTERM", timeout: either("30s", "10s") },
      dns: { skipRegistration: true, nameservers: ["192.0.2.1"], options: [{ name: "ndots", value: "2" }] },
      extra: { future_field: { enabled: true, level: either(1, 2) }, guest: { future_guest: "large" } },
    },
  },
  { customTimeouts: { create: "3m" } },
);

class Half extends pulumi.ComponentResource {
  constructor(name: string) {
    super("upgrade:index:Half", name);
    // A change of region recreates it under another name.
    new machines.Machine(
      `${name}-worker`,
      {
        app: generated.id,
        region: either("fra", "ams"),
        state: either<"stopped" | "started">("stopped", "started"),
        cordoned: either(true, false),
        config: {
          image,
          env: { ROLE: "worker", APP: generated.name, BESIDE: plainVolume.volumeId },
          guest: { cpuKind: "performance", cpus: 1, memoryMb: 2048 },
          processes: [{ cmd: ["work"], env: { PASSWORD: password }, envFrom: [{ envVar: "ID", fieldRef: "id" }] }],
          rootfs: { persist: "restart" },
          autoDestroy: false,
          standbys: either<pulumi.Input<string>[]>([plain.id], []),
        },
      },
      { parent: this },
    );
  }
}
new Half("half");

// A job: complete when it has exited.
new machines.Machine(
  "job",
  {
    app: generated.id,
    config: {
      image: pulumi.secret(image),
      env: { SEEN: either("once", "twice"), UNSEEN: either("once", "twice") },
      restart: { policy: "no" },
      schedule: either<"daily" | "weekly">("daily", "weekly"),
      size: "shared-cpu-1x",
    },
  },
  { ignoreChanges: ["config.env.UNSEEN"] },
);
if (changed) new machines.Machine("added", { app: named.id, state: "suspended", config: { image, spot: {} } });
else new machines.Machine("removed", { app: named.id, config: { image, restart: { policy: "always" } } });

if (config.getBoolean("failing") ?? false)
  new machines.Machine("failing", { app: generated.id, config: { image, env: { MACHINES_SIMULATE: "crash" } } });

// One of every other type; tools/generate/missing.ts says which are left out, and why.
const inNamed = { app: named.id };
new machines.IpAssignment("address", { ...inNamed, type: "v6" });
new machines.Secret("secret", { ...inNamed, name: "SECRET", value: password });
new machines.AppSecrets("secrets", { ...inNamed, values: { LEVEL: either("info", "debug") } });
const box = new machines.SecretKey("box", { ...inNamed, name: "BOX", type: "xaes256gcm" });
new machines.Ciphertext("letter", { ...inNamed, key: box.id, plaintext: base64(either("hello", "hi")) });
const pen = new machines.SecretKey("pen", { ...inNamed, name: "PEN", type: "es256" });
new machines.Signature("signature", { ...inNamed, key: pen.id, plaintext: base64(either("hello", "hi")) });
new machines.VolumeSnapshot("snapshot", { ...inNamed, volume: data.id, triggers: { release: either("1", "2") } });
const ofWeb = { ...inNamed, machine: web.id };
new machines.MachineMetadata("marks", { ...ofWeb, values: { team: either("shop", "sales") } });
new machines.MachineCommand("greeting", { ...ofWeb, create: ["echo", "hello"], update: ["echo", either("a", "b")] });
const issued = new machines.AcmeCertificate("issued", { ...inNamed, hostname: "www.example.com" });
new machines.CertificateValidation("valid", { ...inNamed, hostname: issued.hostname });
// No client trusts this certificate.
new machines.CustomCertificate("own", {
  ...inNamed,
  hostname: "own.example.com",
  fullchain: `-----BEGIN CERTIFICATE-----
MIIBpzCCAU2gAwIBAgIUVGOyKK3FJOcg/AKFU77KU8yUYtswCgYIKoZIzj0EAwIw
GjEYMBYGA1UEAwwPb3duLmV4YW1wbGUuY29tMCAXDTI2MTEyNzAwNDkyOFoYDzIw
OTUwNTA5MDA0OTI4WjAaMRgwFgYDVQQDDA9vd24uZXhhbXBsZS5jb20wWTATBgcq
hkjOPQIBBggqhkjOPQMBBwNCAATcYTWa/2QaXWUFc2RqpRHlwN/r2pHm5SdAilZl
sj9pIT5FlwamC+/Qu1hb5w6yuoFFEAfHJWh7UZmfWX+GM2JZo28wbTAdBgNVHQ4E
FgQUFE0bXsWaUQpw/QdXWrHKpp8EsF0wHwYDVR0jBBgwFoAUFE0bXsWaUQpw/QdX
WrHKpp8EsF0wDwYDVR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgg9vd24uZXhhbXBs
ZS5jb20wCgYIKoZIzj0EAwIDSAAwRQIgTNd5WiVszIRzCyb4TxhLi3qc6BiXt8ez
RiksT7di7dYCIQDoJ/fd+cMlUVUD7DuDEZAV6yxDoSB5Ts5fImXgTPHs5g==
-----END CERTIFICATE-----
`,
  privateKey: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHI5YDa4NJzqFtg7V
VEH/fHegfZwMDK/nPYzdGfL7CduhRANCAATcYTWa/2QaXWUFc2RqpRHlwN/r2pHm
5SdAilZlsj9pIT5FlwamC+/Qu1hb5w6yuoFFEAfHJWh7UZmfWX+GM2JZ
-----END PRIVATE KEY-----
`,
});
const cluster = new machines.PostgresCluster("cluster", {
  region: "fra",
  plan: "basic",
  deletionProtection: false,
});
const inCluster = { cluster: cluster.id };
const database = new machines.PostgresDatabase("database", { ...inCluster, name: "shop", allowDataLoss: true });
new machines.PostgresUser("user", { ...inCluster, username: "shop", role: either("writer", "reader") });
new machines.PostgresExtension("extension", { ...inCluster, database: database.id, name: "vector" });
new machines.PostgresBackup("backup", { ...inCluster, triggers: { release: either("1", "2") } });
new machines.PostgresAttachment("attachment", { ...inCluster, ...inNamed });

// Only one of the bindings has explicit providers.
const { Provider } = machines as unknown as {
  Provider?: new (name: string, args: pulumi.Inputs) => pulumi.ProviderResource;
};
new machines.Secret("unstored", {
  app: generated.id,
  name: "UNSTORED",
  valueWo: password,
  valueVersion: either(1, 2),
});
new machines.AppSecrets("unstored", { app: named.id, valuesWo: { UNSTORED: password }, valuesVersion: either(1, 2) });

if (Provider && (config.getBoolean("places") ?? false)) {
  const elsewhere = new Provider("elsewhere", {
    endpoint: service.require("endpoint"),
    token: service.requireSecret("token"),
    organization: "personal",
    retries: either(3, 4),
    requestTimeoutSeconds: 20,
  });
  new machines.App("abroad", {}, { provider: elsewhere });
}

export const appName = generated.name;
export const address = web.privateIp;
export const volume = plainVolume.volumeId;
export const sealed = pulumi.secret(web.name);
