// The environment of the programs that the commands and tests of this clone start. What users have set up for their own work must
// not change the results.
import os from "node:os";
import { inRoot } from "./paths.mjs";

/**
 * Settings of npm that win over those of the user's `.npmrc` and of the command line that started us. Registries, proxies, certificates
 * and `ignore-scripts` remain the user's.
 */
const npm = {
  // A warning, for example about a key that npm does not know, is not part of a program's output.
  loglevel: "error",
  color: "false",
  progress: "false",
  timing: "false",
  json: "false",
  long: "false",
  parseable: "false",
  usage: "false",
  fund: "false",
  audit: "false",
  update_notifier: "false",
  dry_run: "false",
  global: "false",
  location: "user",
  // Wins over `omit`, which an empty variable does not unset, and over NODE_ENV=production.
  include: ["dev", "optional", "peer"].join("\n\n"),
  install_strategy: "hoisted",
  legacy_peer_deps: "false",
  strict_peer_deps: "false",
  engine_strict: "false",
  package_lock: "true",
  bin_links: "true",
  init_type: "commonjs",
};
const npmName = (name) => /^npm_config_(.+)$/i.exec(name)?.[1]?.toLowerCase().replaceAll("-", "_");
const ofNpm = [
  "omit",
  "only",
  "production",
  "workspace",
  "workspaces",
  "include_workspace_root",
  "before",
  ...Object.keys(npm),
];

/** Variables that change what programs print, or which folder or repository they work on. */
const ofUser = [
  // Those for connections to other computers remain, and what `git config` would say.
  /^GIT_(?!ASKPASS|CONFIG|EXEC_PATH|PROXY_|SSH|SSL_|TERMINAL_PROMPT)/,
  /^(LANGUAGE$|LC_)/,
  /^(GOARCH|GOFLAGS|GOOS)$/,
  /^PYTHON|^PIP_(PREFIX|REQUIRE_VIRTUALENV|ROOT|TARGET)$/,
  /^(CDPATH|GREP_OPTIONS|POSIXLY_CORRECT|TAR_OPTIONS)$/,
];

/** Settings of the Pulumi CLI, of the provider and of the service; not those of this clone (`PULUMI_MACHINES_`). */
const ofPulumi = [/^PULUMI_(?!MACHINES_)/, /^MACHINES_/];

/** Variables that are meant for our commands, but must not change the result of a test. */
const ofCommands = [
  ...ofPulumi,
  /^GIT_CONFIG/,
  /^(CI|CLICOLOR|CLICOLOR_FORCE|FORCE_COLOR|NO_COLOR|NODE_DISABLE_COLORS)$/,
  /^GITHUB_/,
  /^(KUBECONFIG$|KUBERNETES_SERVICE_)/,
  /^(COMPOSE|OTEL|PG[A-Z])/,
];

const without = (env, patterns) =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !patterns.some((pattern) => pattern.test(name))));

/** Texts of programs in English, and names of files in UTF-8. Every system has this locale. */
const locale = process.platform === "darwin" ? "en_US.UTF-8" : "C.UTF-8";

/** The environment for the commands of this clone. */
export function forCommands(env) {
  const rest = Object.entries(without(env, ofUser)).filter(([name]) => !ofNpm.includes(npmName(name)));
  return {
    ...Object.fromEntries(rest),
    ...Object.fromEntries(Object.entries(npm).map(([name, value]) => [`npm_config_${name}`, value])),
    LANG: locale,
    LC_ALL: locale,
    PIP_USER: "0",
    // Pulumi's libraries for Node.js would also speak to the engine on this computer through the user's proxy.
    no_grpc_proxy: "127.0.0.1,localhost",
  };
}

/** An environment in which Pulumi and the service have only the settings that are added to it. */
export const withoutPulumi = (env) => without(env, ofPulumi);

/**
 * The environment of compilers and checks, which are written in Go: they end before it pays to collect their garbage often. The limit
 * keeps them small on a computer with little memory.
 */
export const forCompilers = (env) => ({ GOGC: "400", GOMEMLIMIT: "3GiB", ...env });

/** The environment for tests. */
export function forTests(env) {
  // Which engine is used remains the user's choice. A certificate without an address is for no engine that tests find or start.
  const ofDocker = env.DOCKER_HOST ? /^DOCKER_(?!HOST$|CERT_PATH$|TLS_VERIFY$)/ : /^DOCKER_/;
  return {
    ...without(forCommands(env), [...ofCommands, ofDocker]),
    GIT_CONFIG_GLOBAL: inRoot("test/support/home/.gitconfig"),
    GIT_CONFIG_NOSYSTEM: "1",
    CURL_HOME: inRoot("test/support/home"),
    // None: the user's helper for credentials may ask questions.
    DOCKER_CONFIG: os.devNull,
  };
}

/** Makes an environment that of this process. */
export function become(env) {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
}
