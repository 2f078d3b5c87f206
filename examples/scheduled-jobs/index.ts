// Jobs that run every hour, day or month: the service starts their Machines, which cost nothing in between.
import * as pulumi from "@pulumi/pulumi";
import * as machines from "pulumi-machines";

const settings = new pulumi.Config();
const image = settings.get("image") ?? "registry.example.com/shop:1.0.0";

const app = new machines.App("jobs");

const secrets = new machines.AppSecrets("secrets", {
  app: app.id,
  values: { DATABASE_URL: settings.getSecret("databaseUrl") ?? pulumi.secret("postgres://localhost/shop") },
});

// The first run is right after the creation, and the others follow at the same time of the hour, day or month.
const jobs = [
  { name: "expire-carts", schedule: "hourly", cmd: ["bin/expire-carts"], memoryMb: 256 },
  { name: "report", schedule: "daily", cmd: ["bin/report", "--to", "team@example.com"], memoryMb: 512 },
  { name: "invoices", schedule: "monthly", cmd: ["bin/invoices"], memoryMb: 1024 },
];

const machinesOfJobs = jobs.map(
  ({ name, schedule, cmd, memoryMb }) =>
    new machines.Machine(name, {
      app: app.id,
      region: "fra",
      minSecretsVersion: secrets.version,
      config: {
        image,
        init: { cmd },
        schedule,
        guest: { cpuKind: "shared", cpus: 1, memoryMb },
        // A run that fails is tried again. After that the Machine waits for its next time.
        restart: { policy: "on-failure", maxRetries: 3 },
        metadata: { job: name },
      },
    }),
);

export const appName = app.name;
export const jobMachines = machinesOfJobs.map(({ name }) => name);
