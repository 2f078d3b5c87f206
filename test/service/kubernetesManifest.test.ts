// The manifest of several members; test/kubernetes/ applies it to a cluster.
import type {
  KubernetesObject,
  V1ClusterRole,
  V1Deployment,
  V1PodDisruptionBudget,
  V1Service,
  V1StatefulSet,
} from "@kubernetes/client-node";
import { expect, test } from "vitest";
import { command } from "./command.ts";

const print = (...more: string[]) =>
  command(["kubernetes", "manifest", "--image", "example/machines-service:1", ...more]);

/** The objects of a manifest, by kind. */
async function manifest(...more: string[]): Promise<ReadonlyMap<string, KubernetesObject>> {
  const { out } = await print(...more);
  const objects = out
    .split("---\n")
    .slice(1)
    .map((text) => JSON.parse(text) as KubernetesObject);
  return new Map(objects.map((one) => [one.kind ?? "", one]));
}

test("one process has a volume, and the right to its lease", async () => {
  const kinds = [...(await manifest()).keys()];
  expect(kinds).toEqual([
    ...["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service"],
    "StatefulSet",
  ]);
});

test("with an ACME authority the service says where the cluster reaches it", async () => {
  const directory = "https://acme.example.com/directory";
  const { spec } = (await manifest("--acme", directory)).get("StatefulSet") as V1StatefulSet;
  const args = spec?.template.spec?.containers[0]?.args;
  expect(args?.slice(-4)).toEqual(["--acme", directory, "--acme-address", "machines-service:4280"]);
});

test("with cert-manager the service may read Secrets, in one namespace that has no others", async () => {
  const { out } = await print("--cluster-issuer", "public");
  const objects = out
    .split("---\n")
    .slice(1)
    .map((text) => JSON.parse(text) as KubernetesObject & { rules?: { resources: string[]; verbs: string[] }[] });
  const reading = objects.filter(({ rules }) =>
    rules?.some(({ resources, verbs }) => resources.includes("secrets") && verbs.includes("get")),
  );
  expect(reading.map(({ kind, metadata }) => `${kind} ${metadata?.namespace}`)).toEqual([
    "Role machines-service-certificates",
  ]);
  expect(out).toContain('"--cluster-issuer",');
});

test("members share a database, and have no volume and no lease", async () => {
  const objects = await manifest("--replicas", "5", "--store-secret", "store", "--ingress-class", "public");
  expect([...objects.keys()]).toEqual([
    ...["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Service"],
    ...["Deployment", "PodDisruptionBudget"],
  ]);
  expect(JSON.stringify([...objects.values()])).not.toContain("leases");
  const { spec } = objects.get("Deployment") as V1Deployment;
  expect(spec?.replicas).toBe(5);
  const pod = spec?.template.spec;
  const [container] = pod?.containers ?? [];
  expect(container?.args).toEqual([
    ...["--data", "/data/service", "--runtime", "kubernetes", "--listen", "0.0.0.0:4280", "--allow-remote"],
    ...["--key-file", "/store/key", "--advertise", "http://$(POD_IP):4280", "--ingress-class", "public"],
  ]);
  const store = container?.env?.find(({ name }) => name === "MACHINES_SERVICE_STORE");
  expect(store?.valueFrom?.secretKeyRef).toEqual({ name: "store", key: "url" });
  expect(pod?.volumes?.map(({ name, emptyDir, secret }) => [name, emptyDir ?? secret?.secretName])).toEqual([
    ["temporary", {}],
    ["data", {}],
    ["key", "store"],
  ]);
  expect(container?.readinessProbe?.httpGet?.path).toBe("/readyz");
  expect(pod?.topologySpreadConstraints?.[0]?.topologyKey).toBe("kubernetes.io/hostname");
  expect((objects.get("PodDisruptionBudget") as V1PodDisruptionBudget).spec?.maxUnavailable).toBe(1);
});

test("the clusters of regions are read from Secrets, which are mounted once", async () => {
  const secrets = ["ams=europe", "fra=europe", "iad=america"].flatMap((one) => ["--kubeconfig-secret", one]);
  const { spec } = (await manifest(...secrets)).get("StatefulSet") as V1StatefulSet;
  const pod = spec?.template.spec;
  expect(pod?.containers[0]?.args?.slice(-6)).toEqual([
    ...["--kubeconfig", "ams=/clusters/europe/kubeconfig"],
    ...["--kubeconfig", "fra=/clusters/europe/kubeconfig"],
    ...["--kubeconfig", "iad=/clusters/america/kubeconfig"],
  ]);
  expect(pod?.volumes?.flatMap(({ secret }) => secret?.secretName ?? [])).toEqual(["europe", "america"]);
  expect(pod?.containers[0]?.volumeMounts?.map(({ mountPath }) => mountPath)).toEqual([
    ...["/data", "/tmp", "/clusters/europe", "/clusters/america"],
  ]);
  const { code, err } = await print("--kubeconfig-secret", "europe");
  expect([code, err]).toEqual([1, expect.stringContaining("It must be REGION=SECRET, such as ams=amsterdam.")]);
});

test("a service with CloudNativePG may change the operator's objects, and others may not", async () => {
  const groupsOf = (objects: ReadonlyMap<string, KubernetesObject>) =>
    (objects.get("ClusterRole") as V1ClusterRole).rules?.flatMap(({ apiGroups }) => apiGroups ?? []);
  const objects = await manifest("--postgres", "cnpg");
  expect(groupsOf(objects)).toContain("postgresql.cnpg.io");
  const [container] = (objects.get("StatefulSet") as V1StatefulSet).spec?.template.spec?.containers ?? [];
  expect(container?.args?.slice(-2)).toEqual(["--postgres", "cnpg"]);
  expect(groupsOf(await manifest())).not.toContain("postgresql.cnpg.io");
});

test("members need a database, and have no volume to choose", async () => {
  const alone = await print("--replicas", "3");
  expect([alone.code, alone.err]).toEqual([1, expect.stringContaining("--replicas needs --store-secret")]);
  const both = await print("--store-secret", "store", "--storage", "1Gi");
  expect([both.code, both.err]).toEqual([1, expect.stringContaining("--storage")]);
});

test("proxies are a Deployment without rights, and take the place of Ingresses", async () => {
  const { out } = await print("--proxy", "--proxy-replicas", "3", "--proxy-tcp", "db:5432", "cache:6379=16379");
  const all = out
    .split("---\n")
    .slice(1)
    .map((text) => JSON.parse(text) as KubernetesObject & V1Deployment & V1Service);
  const [service, ...proxies] = all.slice(-4);
  expect(service?.spec?.template?.spec?.containers[0]?.args?.slice(-2)).toEqual(["--ingress-class", "none"]);
  expect(proxies.map(({ kind, metadata }) => `${kind} ${metadata?.name}`)).toEqual([
    ...["Deployment", "PodDisruptionBudget", "Service"].map((kind) => `${kind} machines-service-proxy`),
  ]);
  const [deployment, budget, balancer] = proxies;
  expect(deployment?.spec?.replicas).toBe(3);
  const pod = deployment?.spec?.template.spec;
  expect([pod?.automountServiceAccountToken, pod?.serviceAccountName]).toEqual([false, undefined]);
  expect(pod?.containers[0]?.args?.slice(-4)).toEqual(["--tcp", "db:5432=20000", "--tcp", "cache:6379=20001"]);
  expect(budget?.spec).toMatchObject({ maxUnavailable: 1 });
  expect(balancer?.spec?.type).toBe("LoadBalancer");
  expect(balancer?.spec?.ports).toEqual([
    { name: "http", port: 80, targetPort: "http" },
    { name: "https", port: 443, targetPort: "https" },
    { name: "tcp-5432", port: 5432, targetPort: "tcp-5432" },
    { name: "tcp-16379", port: 16_379, targetPort: "tcp-16379" },
  ]);
  // The Service of the API does not lead to them.
  const api = all.find(({ kind, metadata }) => kind === "Service" && metadata?.name === "machines-service");
  expect(api?.spec?.selector).not.toEqual(deployment?.spec?.selector?.matchLabels);
});

test.each([
  [["--proxy-replicas", "2"], "--proxy-replicas needs --proxy"],
  [["--postgres-backup", "s3:https://a/b"], "--postgres-backup needs --postgres-backup-secret, the credentials"],
  [["--postgres-backup-secret", "a"], "--postgres-backup-secret needs --postgres-backup, the address"],
  [["--postgres-backup", "s3:https://a/b", "--postgres-backup-secret", "a"], "--postgres-backup needs --postgres cnpg"],
  [["--proxy-tcp", "db:5432"], "--proxy-tcp needs --proxy"],
  [["--proxy", "--proxy-tcp", "5432"], 'got "5432"'],
  [["--proxy", "--ingress-class", "public"], "--ingress-class"],
])("options of proxies are checked: %j", async (more, problem) => {
  const { code, err } = await print(...more);
  expect([code, err]).toEqual([1, expect.stringContaining(problem)]);
});
