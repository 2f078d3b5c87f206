// CloudNativePG, an operator of Postgres clusters, for clusters of tests: built once from its Go module. It runs outside of the cluster.
// The image of its servers is assembled once from Debian's packages.
import { KubeConfig, KubernetesObjectApi, loadAllYaml } from "@kubernetes/client-node";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { tarOf } from "../../service/runtime/docker/tar.ts";
import { LocalAuthority } from "../../service/runtime/localAuthority.ts";
import { accepts } from "../../service/runtime/probe.ts";
import { withLock } from "../lib/lock.mjs";
import { inRoot } from "../lib/paths.mjs";
import { quiet, tail } from "../lib/process.mjs";
import { installPackages, isDebian } from "./debian.mjs";
import { goEnvironment, goProgram } from "./goProgram.mjs";
import { component, freePort } from "./kubernetes.mjs";
import { importInto } from "./kubernetesNode.mjs";
import { userCache } from "./userCache.mjs";

const source = "tools/kubernetes/cnpg";
const module = "github.com/cloudnative-pg/cloudnative-pg";

/** The images by their names in the node. */
export const images = {
  operator: "localhost/cloudnative-pg:1.27.0",
  postgres: "localhost/postgresql:17",
  /** The same under another name, as if it were the next minor version. */
  nextPostgres: "localhost/postgresql:17.99",
  /** The operator has no setting for this one. */
  pgbouncer: "ghcr.io/cloudnative-pg/pgbouncer:1.24.1",
};

/**
 * The program of the operator; or the reason why there is none.
 * @param {NodeJS.ProcessEnv} env
 */
export const operatorProgram = (env) =>
  goProgram(
    { name: "manager", what: "the operator of Postgres clusters", source, package: `${module}/cmd/manager` },
    env,
  );

const release = "trixie";
// The servers copy their archive and backups to object storage with the programs of Barman.
const packages = ["postgresql-17", "pgbouncer", "barman-cli-cloud"];
// Barman's library has a description of each service of AWS, 100 MB in all.
const services = "/usr/lib/python3/dist-packages/botocore/data";
const left = [
  ...["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/lib/*/libLLVM*"],
  `${services}/*/*`,
];
const kept = [`${services}/s3/*`];
const hooks = [
  // The number that the operator starts servers with; the image needs a user of this number.
  `chroot "$1" sh -c 'groupmod --non-unique --gid 26 postgres && usermod --uid 26 postgres'`,
  // The compiler of queries needs a library of a hundred MB.
  `rm -rf "$1"/var/lib/postgresql/17 "$1"/etc/postgresql/17 "$1"/usr/lib/postgresql/17/lib/llvmjit* "$1"/usr/lib/postgresql/17/lib/bitcode`,
  // The operator starts the pooler there.
  `ln -s ../sbin/pgbouncer "$1"/usr/bin/pgbouncer`,
  `rm -rf "$1"/var/lib/apt/lists "$1"/var/cache/apt`,
];

/** The configuration of the image of servers and poolers. */
const serverConfig = {
  Env: ["PATH=/usr/lib/postgresql/17/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
  User: "26",
};

/**
 * A tar archive with PostgreSQL and PgBouncer; or the reason why there is none.
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<{ archive: string, reason?: undefined } | { archive?: undefined, reason: string }>}
 */
export async function serverArchive(env) {
  const options = [
    ...["--variant=minbase", `--include=${packages.join(",")}`, "--format=tar", "--skip=output/dev"],
    ...left.map((pattern) => `--dpkgopt=path-exclude=${pattern}`),
    ...kept.map((pattern) => `--dpkgopt=path-include=${pattern}`),
    ...hooks.map((hook) => `--customize-hook=${hook}`),
    release,
  ];
  const hash = createHash("sha256").update(JSON.stringify(options)).digest("hex").slice(0, 12);
  const archive = path.join(userCache("the image of Postgres"), `postgres-${hash}.tar`);
  return withLock(`${archive}.lock`, "assembling the image of Postgres", async () => {
    if (fs.existsSync(archive)) return { archive };
    if ((await quiet("mmdebstrap", ["--version"])).code !== 0) {
      const reason = isDebian() ? await installPackages(["mmdebstrap"], env) : "mmdebstrap is not installed";
      if (reason !== undefined) return { reason };
    }
    const draft = `${archive}.new.tar`;
    const args = [...options, draft, "http://deb.debian.org/debian"];
    const { code, output } = await quiet("mmdebstrap", args, { env, alive: "still assembling the image of Postgres" });
    if (code !== 0) return { reason: `Debian's packages could not be fetched:\n${tail(output, 5)}` };
    fs.renameSync(draft, archive);
    return { archive };
  });
}

/** Definitions of the operator's kinds, as its module has them. */
function definitions() {
  const described = execFileSync("go", ["mod", "download", "-json", module], {
    cwd: inRoot(source),
    env: goEnvironment(process.env),
    encoding: "utf8",
  });
  const folder = path.join(JSON.parse(described).Dir, "config/crd/bases");
  return fs.readdirSync(folder).flatMap((name) => loadAllYaml(fs.readFileSync(path.join(folder, name), "utf8")));
}

/**
 * Puts the images of the operator, of servers and of poolers into a node.
 * @param {{ folder: string, ctr: string }} node
 * @param {string} program The operator.
 * @param {string} archive The files of servers and poolers.
 */
export async function importImages({ folder, ctr }, program, archive) {
  const files = [{ name: "manager", mode: 0o755, contents: fs.readFileSync(program) }];
  await importInto(ctr, folder, images.operator, await tarOf(files), { Entrypoint: ["/manager"], User: "10001" });
  const layer = fs.readFileSync(archive);
  for (const image of [images.postgres, images.nextPostgres, images.pgbouncer])
    await importInto(ctr, folder, image, layer, serverConfig);
}

const startsIn = 60_000;

/** The catalog with the image of servers. */
export const catalog = "tests";

/** A catalog of servers with an image. */
export const catalogOf = (name, image) => ({
  apiVersion: "postgresql.cnpg.io/v1",
  kind: "ClusterImageCatalog",
  metadata: { name },
  spec: { images: [{ major: 17, image }] },
});

/** Resolves when the API server has a new kind, which takes a moment. */
async function served(objects, version, kind) {
  for (const until = Date.now() + startsIn; ; await sleep(50))
    try {
      await objects.list(version, kind);
      return;
    } catch (error) {
      if (Date.now() > until) throw error;
    }
}

/**
 * Installs the operator's kinds in a cluster, and starts the operator, which ends with the process that started it. It sets the
 * defaults of objects itself, so the API server need not ask it about them.
 * @param {{ kubeconfig: string, folder: string }} cluster
 * @param {string} program
 */
export async function startOperator({ kubeconfig, folder }, program) {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfig);
  const objects = KubernetesObjectApi.makeApiClient(config);
  const defined = definitions();
  for (const object of defined) await objects.create(object);
  for (const { spec } of defined) await served(objects, `${spec.group}/${spec.versions[0].name}`, spec.names.kind);
  const at = path.join(folder, "cnpg");
  fs.mkdirSync(path.join(at, "operator"), { recursive: true });
  const { chain, key } = await new LocalAuthority(undefined).certificateFor(["localhost"]);
  fs.writeFileSync(path.join(at, "apiserver.crt"), chain);
  fs.writeFileSync(path.join(at, "apiserver.key"), key, { mode: 0o600 });
  // It compares the programs of Pods with this one.
  const name = { x64: "amd64" }[process.arch] ?? process.arch;
  fs.rmSync(path.join(at, "operator", `manager_${name}`), { force: true });
  fs.symlinkSync(program, path.join(at, "operator", `manager_${name}`));
  const port = await freePort();
  const { KUBERNETES_SERVICE_HOST: _, ...env } = {
    ...process.env,
    KUBECONFIG: kubeconfig,
    OPERATOR_NAMESPACE: "default",
    OPERATOR_IMAGE_NAME: images.operator,
    POSTGRES_IMAGE_NAME: images.postgres,
    WEBHOOK_CERT_DIR: at,
  };
  const args = ["controller", `--webhook-port=${port}`, "--metrics-bind-address=0"];
  const operator = component("cnpg", "env", ["-C", at, program, ...args], folder, env);
  operator.ask("start");
  for (const until = Date.now() + startsIn; !(await accepts(`127.0.0.1:${port}`)); await sleep(50))
    if (Date.now() > until || !operator.isRunning()) {
      await operator.remove();
      throw new Error(`the operator of Postgres clusters did not start:\n${operator.log()}`);
    }
  await objects.create(catalogOf(catalog, images.postgres));
  return {
    /** Starts, kills, pauses or continues it. */
    ask: operator.ask,
    remove: () => operator.remove(),
  };
}
