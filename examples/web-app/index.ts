// A web App: secrets, a key that never leaves the service, and a certificate for a hostname of your own.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
// A placeholder: set your own with `pulumi config set hostname www.example.com`.
const hostname = settings.get("hostname") ?? "www.example.invalid";

const app = new machines.App("shop");

const secrets = new machines.AppSecrets("secrets", {
  app: app.id,
  values: {
    DATABASE_URL: settings.getSecret("databaseUrl") ?? pulumi.secret("postgres://localhost/shop"),
    LOG_LEVEL: "info",
  },
});

// Secrets with a resource of their own, so that another part of the program can declare them.
const mail = new machines.Secret("mail", {
  app: app.id,
  name: "MAIL_TOKEN",
  value: settings.getSecret("mailToken") ?? pulumi.secret("unset"),
});
// The state never has this token. A new one is sent once the version is raised.
const payments = new machines.Secret("payments", {
  app: app.id,
  name: "PAYMENTS_TOKEN",
  valueWo: process.env["PAYMENTS_TOKEN"] ?? "unset",
  valueVersion: settings.getNumber("paymentsTokenVersion") ?? 1,
});

const sessions = new machines.SecretKey("sessions", { app: app.id, name: "SESSIONS", type: "hs256" });

const web = new machines.Machine(
  "web",
  {
    app: app.id,
    region: "ams",
    // The Machine runs with the current secrets, also after a change.
    minSecretsVersion: [secrets.version, mail.version, payments.version],
    config: {
      image: settings.get("image") ?? "registry.example.com/shop:1.0.0",
      env: { PORT: "8080" },
      services: [
        {
          protocol: "tcp",
          internalPort: 8080,
          ports: [
            { port: 80, handlers: ["http"], forceHttps: true },
            { port: 443, handlers: ["http", "tls"] },
          ],
          checks: [{ type: "http", path: "/healthz", interval: "15s", timeout: "2s", gracePeriod: "5s" }],
        },
      ],
    },
  },
  { dependsOn: sessions },
);

const ipv4 = new machines.IpAssignment("ipv4", { app: app.id, type: "shared_v4" });

const ipv6 = new machines.IpAssignment("ipv6", { app: app.id, type: "v6" });

// The certificate's DNS records point to the addresses, so the addresses come first.
const certificate = new machines.AcmeCertificate("certificate", { app: app.id, hostname }, { dependsOn: [ipv4, ipv6] });

// Your own certificate takes precedence, if there is one.
const [fullchain, privateKey] = [settings.get("fullchain"), settings.getSecret("privateKey")];
const own =
  fullchain !== undefined && privateKey !== undefined
    ? new machines.CustomCertificate("own", { app: app.id, hostname, fullchain, privateKey })
    : undefined;

const validate = () =>
  new machines.CertificateValidation(
    "valid",
    { app: app.id, hostname: certificate.hostname, triggers: own ? { uploaded: own.uploadedAt } : {} },
    { dependsOn: own ?? certificate, customTimeouts: { create: "1h" } },
  );
const valid = settings.getBoolean("waitForCertificate") ? validate() : undefined;

export const appName = app.name;
export const webMachine = web.id;
export const secretsVersion = secrets.version;
export const addresses = [ipv4.ip, ipv6.ip];
export const dnsRecords = certificate.dnsRecords;
export const validUntil = valid?.expiresAt;
