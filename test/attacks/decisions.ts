// Who may use what: a decision for every operation of the contract and for every other route, written by hand. A new operation
// does not compile without a decision; a new route without one fails test/attacks/authorization.test.ts.
import type { OperationId } from "../../api/index.ts";
import type { Role, TokenRole } from "../../service/store/roles.ts";

/** Whom something belongs to. */
export type Owner =
  /** No token is needed. */
  | "anyone"
  /** No token is needed, and pages of other origins may lead there. */
  | "any page"
  /** Every valid token, which gets only what it may see. */
  | "holder"
  /** Tokens of the organization, and those of the App. */
  | "app"
  /** Tokens of the whole organization. */
  | "organization"
  /** Tokens of the first organization, as a whole. */
  | "operator"
  /** Tokens of proxies that are processes of their own. */
  | "proxy"
  /** A session that was opened with a code of this computer, while there is an admin listener. */
  | "operator's session"
  /** The token of the admin listener. */
  | "administrator";

/** What a request does. Read-only tokens see no value that is secret; a session of the console may operate, if the service allows it. */
export type Effect = "read" | "reveal" | "operate" | "change";

/** Who may use an operation or a route. */
export interface Decision {
  readonly owner: Owner;
  readonly effect: Effect;
}

/** The words of a text. */
type Words<Text> = Text extends `${infer First}\n    ${infer Rest}`
  ? Words<First> | Words<Rest>
  : Text extends `${infer First} ${infer Rest}`
    ? First | Words<Rest>
    : Text;

/** Decides about operations. It does not compile while one of the contract has no decision. */
const decide = <const Decided extends Readonly<Record<string, string>>>(
  decided: OperationId extends Words<Decided[keyof Decided]>
    ? Decided
    : { readonly undecided: Exclude<OperationId, Words<Decided[keyof Decided]>> },
): Readonly<Record<string, string>> => decided;

const operations = decide({
  "holder read": "platform.regions tokens.current",
  "organization read": `apps.list orgs.machines orgs.volumes platform.placements
    postgres.list postgres.get postgres.listDatabases postgres.activeQueries postgres.slowQueries
    postgres.listExtensions postgres.listUsers postgres.listBackups`,
  "organization reveal": `postgres.credentials`,
  "organization change": `apps.create apps.createDeployToken
    postgres.create postgres.delete postgres.attach postgres.detach postgres.installExtension postgres.removeExtension`,
  "organization operate": `postgres.createDatabase postgres.deleteDatabase postgres.createUser postgres.updateUser
    postgres.rotatePassword postgres.deleteUser postgres.createBackup postgres.restore postgres.fork`,
  "app read": `apps.get ipAssignments.list
    machines.list machines.get machines.events machines.getLease machines.getMetadata machines.getMetadataKey machines.versions
    machines.processes machines.getMemory machines.wait
    certificates.list certificates.get volumes.list volumes.get volumes.listSnapshots
    secrets.list secrets.get secretKeys.list secretKeys.get`,
  "app operate": `machines.start machines.stop machines.restart machines.suspend machines.cordon machines.uncordon
    machines.destroy machines.exec machines.signal`,
  "app change": `apps.delete ipAssignments.assign ipAssignments.release
    machines.create machines.update machines.acquireLease machines.releaseLease machines.patchMetadata machines.putMetadata
    machines.setMetadataKey machines.deleteMetadataKey machines.setMemory machines.reclaimMemory
    certificates.createAcme certificates.createCustom certificates.check certificates.delete certificates.deleteAcme
    certificates.deleteCustom
    volumes.create volumes.update volumes.extend volumes.delete volumes.createSnapshot
    secrets.update secrets.set secrets.delete
    secretKeys.set secretKeys.delete secretKeys.generate secretKeys.encrypt secretKeys.decrypt secretKeys.sign secretKeys.verify`,
});

const routes: Readonly<Record<string, readonly string[]>> = {
  "anyone read": [
    ...["GET /", "GET /healthz", "GET /readyz", "GET /openapi.json", "GET /docs"],
    ...["GET /console", "GET /console/*", "GET /console/api", "GET /console/api/*"],
    ...["GET /console/assets", "GET /console/assets/*", "GET /console/assets/:file"],
    // They open the session of the secret in the body, and remove the cookie of a browser.
    ...["POST /console/session", "DELETE /console/session"],
    "GET /console/provider",
    // The answer to a certificate authority, which asks from the internet.
    "GET /.well-known/acme-challenge/:token",
    // It gives a token for an identity token.
    "POST /local/tokens/exchange",
  ],
  // They lead to the provider at which people sign in, and back from it.
  "any page read": ["GET /console/sign-in", "GET /console/signed-in"],
  "holder read": [
    ...["GET /console/session", "GET /console/events", "GET /local/rollouts", "GET /local/history"],
    ...["GET /console/api/overview", "GET /console/api/requests", "GET /console/api/faults"],
    "GET /console/api/search",
  ],
  "app change": ["PUT /local/apps/:app_name/rollouts"],
  "app read": [
    ...["GET /local/apps/:app_name/addresses", "GET /local/apps/:app_name/logs", "GET /local/rollouts/:rollout_id"],
    ...["GET /console/api/apps/:app_name", "GET /console/api/apps/:app_name/groups"],
    ...["GET /console/api/apps/:app_name/machines", "GET /console/api/apps/:app_name/machines/:machine_id"],
    "GET /console/api/apps/:app_name/machines/:machine_id/inside",
    "GET /console/api/apps/:app_name/machines/:machine_id/lines",
    "GET /console/api/apps/:app_name/machines/:machine_id/usage",
    "GET /console/api/apps/:app_name/usage",
    "GET /console/api/apps/:app_name/machines/:machine_id/versions/:version",
    "GET /console/api/code",
  ],
  "organization read": ["GET /console/api/clusters/:cluster_id", "GET /console/api/clusters/:cluster_id/usage"],
  "organization operate": [
    "POST /console/api/clusters/:postgres_cluster_id/users/:username/reveal",
    "POST /console/api/clusters/:cluster_id/tables",
    "POST /console/api/clusters/:cluster_id/query",
  ],
  "app operate": [
    "GET /local/apps/:app_name/machines/:machine_id/terminal",
    "POST /console/api/apps/:app_name/secrets/:secret_name/reveal",
  ],
  "operator read": ["GET /metrics"],
  "proxy read": ["GET /local/proxy/feed", "POST /local/proxy/report", "POST /local/proxy/answers"],
  "proxy operate": ["POST /local/proxy/machines/:machine_id/start"],
  "operator's session read": ["POST /console/api/faults", "DELETE /console/api/faults/:id"],
};

const adminRoutes: Readonly<Record<string, readonly string[]>> = {
  "administrator change": [
    ...[
      "GET /faults",
      "POST /faults",
      "DELETE /faults",
      "DELETE /faults/:id",
      "GET /audit",
      "GET /images",
      "PUT /images",
    ],
    ...["PUT /dns/:hostname", "DELETE /dns/:hostname", "POST /clock"],
  ],
};

function byName(decided: Readonly<Record<string, readonly string[]>>): ReadonlyMap<string, Decision> {
  const found = new Map<string, Decision>();
  for (const [words, names] of Object.entries(decided)) {
    const [, owner, effect] = /^(.+) (\w+)$/.exec(words) ?? [];
    for (const name of names) {
      if (found.has(name)) throw new Error(`${name} has two decisions`);
      found.set(name, { owner: owner as Owner, effect: effect as Effect });
    }
  }
  return found;
}

/** The decision about operations that show the values of secrets if the query asks for them. */
export const ofValues: Decision = { owner: "app", effect: "reveal" };

const otherRoles: Readonly<Record<Exclude<Role, "read">, readonly string[]>> = {
  operate: [
    ...["machines.start", "machines.stop", "machines.restart", "machines.suspend", "machines.cordon"],
    ...["machines.uncordon", "machines.exec", "machines.signal", "machines.acquireLease", "machines.releaseLease"],
    ...["volumes.createSnapshot", "postgres.createBackup"],
    "GET /local/apps/:app_name/machines/:machine_id/terminal",
  ],
  deploy: ["postgres.credentials"],
  own: ["apps.createDeployToken", "POST /console/api/apps/:app_name/secrets/:secret_name/reveal"],
};

/** The role that an operation or a route needs: `read` for what only reads, `deploy` for the rest, with these exceptions. */
export function roleOf(name: string, { owner, effect }: Decision): TokenRole {
  if (owner === "proxy") return "proxy";
  for (const [role, names] of Object.entries(otherRoles)) if (names.includes(name)) return role as Role;
  return effect === "read" ? "read" : "deploy";
}

/** The decisions about operations, by id. */
export const ofOperations = byName(
  Object.fromEntries(Object.entries(operations).map(([words, ids]) => [words, ids.split(/\s+/)])),
);

/** The decisions about the other routes of the service, by method and pattern. */
export const ofRoutes = byName(routes);

/** The decisions about the routes of the admin listener. */
export const ofAdminRoutes = byName(adminRoutes);

/** Operations that put something under a name of the caller: through another App, they put something else there. */
export const putsByName: readonly string[] = `
    secrets.set secretKeys.set secretKeys.generate`
  .trim()
  .split(/\s+/);
