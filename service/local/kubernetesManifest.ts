// What runs the service in a Kubernetes cluster: one Pod with a volume, or several members that share a database, and the rights that
// the Kubernetes runtime needs.
import { certificateNamespace } from "../runtime/kubernetes/names.ts";
import type { RawPlace } from "../proxy/rawPlace.ts";

const name = "machines-service";
const port = 4280;
const labels = { "app.kubernetes.io/name": name };

/** What a manifest depends on. */
export interface ManifestOptions {
  readonly image: string;
  readonly namespace: string;
  /** Size of the volume with the data, such as `10Gi`. */
  readonly storage: string;
  readonly storageClass?: string;
  /** Class of the Ingresses for hostnames. */
  readonly ingressClass?: string;
  /** The clusters of regions. Default: the one that the service is in has all. */
  readonly clusters?: readonly ClusterSecret[];
  /** What runs Postgres clusters: `cnpg`. Default: a simulation. */
  readonly postgres?: string;
  /** The object storage of Postgres clusters. */
  readonly postgresBackup?: PostgresBackup;
  /** Directory of the ACME authority that issues certificates. */
  readonly acme?: string;
  /** The ClusterIssuer of cert-manager that issues them instead. */
  readonly clusterIssuer?: string;
  /** Several members instead of one process with a volume. */
  readonly members?: Members;
  /** Proxies of their own instead of Ingresses. */
  readonly proxies?: Proxies;
}

/** The proxies of a service. */
export interface Proxies {
  readonly replicas: number;
  /** Raw ports of Apps. */
  readonly tcp: readonly RawPlace[];
}

/** Where Postgres clusters keep backups and an archive. */
export interface PostgresBackup {
  readonly at: string;
  /** Name of the Secret with its credentials, named as variables. */
  readonly secret: string;
}

/** A region, and the Secret whose key `kubeconfig` has the configuration of its cluster. */
export interface ClusterSecret {
  readonly region: string;
  readonly secret: string;
}

/** The members of a service. */
export interface Members {
  readonly replicas: number;
  /** Name of the Secret with the URL of their database (`url`) and their key (`key`). */
  readonly secret: string;
}

const watched = ["list", "watch", "create", "patch", "delete"];

/** The rights in all namespaces, because the runtime creates a namespace for each network of Apps. */
const rules = [
  { apiGroups: [""], resources: ["namespaces"], verbs: watched },
  { apiGroups: [""], resources: ["nodes"], verbs: ["list", "watch"] },
  { apiGroups: [""], resources: ["pods"], verbs: ["list", "watch", "create", "delete"] },
  // A cluster asks for `get` or `create`, depending on how the connection begins.
  { apiGroups: [""], resources: ["pods/exec"], verbs: ["get", "create"] },
  { apiGroups: [""], resources: ["pods/log"], verbs: ["get"] },
  { apiGroups: [""], resources: ["pods/resize"], verbs: ["patch"] },
  // It writes secrets, and cannot read any.
  { apiGroups: [""], resources: ["secrets"], verbs: ["create", "patch", "delete"] },
  { apiGroups: [""], resources: ["services", "persistentvolumeclaims"], verbs: watched },
  { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: watched },
  { apiGroups: ["networking.k8s.io"], resources: ["ingresses"], verbs: watched },
  { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["create", "patch"] },
  { apiGroups: ["policy"], resources: ["poddisruptionbudgets"], verbs: watched },
  { apiGroups: ["metrics.k8s.io"], resources: ["pods"], verbs: ["list"] },
  { apiGroups: ["snapshot.storage.k8s.io"], resources: ["volumesnapshots"], verbs: watched },
];

/** The further rights for Postgres clusters. */
const postgresRules = [
  { apiGroups: ["postgresql.cnpg.io"], resources: ["clusters", "poolers", "backups"], verbs: watched },
];

/** The objects, in the order in which they are to be created. */
export const manifest = (options: ManifestOptions): readonly object[] =>
  parts(options).map((part) => JSON.parse(JSON.stringify(part, flatArguments)) as object);

/** Arguments that belong together, such as an option and its value, are a list of their own (kubernetesChart.ts). */
const flatArguments = (key: string, value: unknown): unknown =>
  key === "args" && Array.isArray(value) ? value.flat() : value;

/** The same, with the arguments in groups. */
export function parts(options: ManifestOptions): readonly object[] {
  const { namespace, members, postgres } = options;
  const metadata = { name, namespace, labels };
  const rbac = "rbac.authorization.k8s.io";
  const roleOf = (kind: string) => ({ apiGroup: rbac, kind, name });
  const subjects = [{ kind: "ServiceAccount", name, namespace }];
  // Of two services in a cluster, each has its own rights.
  const ofCluster = { name: `${name}-${namespace}`, labels };
  const forPostgres = { name: `${name}-${namespace}-postgres`, labels };
  const bind = (role: { readonly name: string }) => ({
    apiVersion: `${rbac}/v1`,
    kind: "ClusterRoleBinding",
    metadata: role,
    roleRef: { ...roleOf("ClusterRole"), name: role.name },
    subjects,
  });
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels } },
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    {
      apiVersion: `${rbac}/v1`,
      kind: "ClusterRole",
      metadata: ofCluster,
      rules,
    },
    bind(ofCluster),
    ...(postgres === undefined
      ? []
      : [
          { apiVersion: `${rbac}/v1`, kind: "ClusterRole", metadata: forPostgres, rules: postgresRules },
          bind(forPostgres),
        ]),
    // The leadership of a member replaces the lease.
    ...(members
      ? []
      : [
          {
            apiVersion: `${rbac}/v1`,
            kind: "Role",
            metadata,
            rules: [{ apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get", "create", "update"] }],
          },
          { apiVersion: `${rbac}/v1`, kind: "RoleBinding", metadata, roleRef: roleOf("Role"), subjects },
        ]),
    ...(options.clusterIssuer === undefined ? [] : forCertificates(namespace, subjects)),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: { selector: labels, ports: [{ name: "http", port, targetPort: "http" }] },
    },
    ...(members ? runMembers(options, members, metadata) : [runAlone(options, metadata)]),
    ...(options.proxies ? runProxies(options, options.proxies) : []),
  ];
}

/** The namespace of Certificates, and what the service may do in it: only there it may read Secrets. */
function forCertificates(own: string, subjects: readonly object[]): readonly object[] {
  const namespace = certificateNamespace(own);
  const metadata = { name, namespace, labels };
  const rbac = "rbac.authorization.k8s.io";
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels } },
    {
      apiVersion: `${rbac}/v1`,
      kind: "Role",
      metadata,
      rules: [
        { apiGroups: ["cert-manager.io"], resources: ["certificates"], verbs: watched },
        { apiGroups: [""], resources: ["secrets"], verbs: ["get"] },
      ],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: "RoleBinding",
      metadata,
      roleRef: { apiGroup: rbac, kind: "Role", name },
      subjects,
    },
  ];
}

/** One process: its volume belongs to one Pod, which the cluster never starts twice. */
function runAlone({ storage, storageClass, ...options }: ManifestOptions, metadata: object): object {
  const nothing = { args: [], env: [], mounts: [], volumes: [], container: {} };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata,
    spec: {
      serviceName: name,
      replicas: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: podOf(options, nothing) },
      volumeClaimTemplates: [
        {
          metadata: { name: "data" },
          spec: {
            // No other Pod can have it, not even on the same node.
            accessModes: ["ReadWriteOncePod"],
            resources: { requests: { storage } },
            ...(storageClass === undefined ? {} : { storageClassName: storageClass }),
          },
        },
      ],
    },
  };
}

/**
 * Several members. They are a Deployment: their data are in the database, so a Pod needs no volume and no name of its own, and one whose
 * node is lost is replaced at once, which a StatefulSet does only after the node has come back or was removed.
 */
function runMembers(options: ManifestOptions, { replicas, secret }: Members, metadata: object): readonly object[] {
  const pod = podOf(options, {
    args: [
      ["--key-file", "/store/key"],
      ["--advertise", `http://$(POD_IP):${port}`],
    ],
    env: [
      { name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
      // No argument, because others on the node can read those.
      { name: "MACHINES_SERVICE_STORE", valueFrom: { secretKeyRef: { name: secret, key: "url" } } },
    ],
    mounts: [{ name: "key", mountPath: "/store", readOnly: true }],
    volumes: [
      { name: "data", emptyDir: {} },
      { name: "key", secret: { secretName: secret, items: [{ key: "key", path: "key" }], defaultMode: 0o440 } },
    ],
    // Until then it answers, and only then it hands over.
    container: { lifecycle: noticed(3000) },
  });
  return replicated(replicas, labels, metadata, pod);
}

/** Several Pods of these labels. A new one is ready before an old one ends, and one at a time may be evicted. */
function replicated(replicas: number, matchLabels: object, metadata: object, pod: object): readonly object[] {
  return [
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata,
      spec: {
        replicas,
        selector: { matchLabels },
        strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
        template: {
          metadata: { labels: matchLabels },
          spec: { ...pod, topologySpreadConstraints: spreadOver(matchLabels) },
        },
      },
    },
    {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata,
      spec: { maxUnavailable: 1, selector: { matchLabels } },
    },
  ];
}

/** Pods of these labels are on different nodes and in different zones, if there are several. */
const spreadOver = (matchLabels: object): readonly object[] =>
  ["kubernetes.io/hostname", "topology.kubernetes.io/zone"].map((topologyKey) => ({
    ...{ maxSkew: 1, topologyKey, whenUnsatisfiable: "ScheduleAnyway", labelSelector: { matchLabels } },
  }));

/** Clients need a moment to notice that a Pod ends. */
const noticed = (ms: number): object => ({
  preStop: { exec: { command: ["node", "-e", `setTimeout(() => {}, ${ms})`] } },
});

const proxyName = `${name}-proxy`;
const proxyLabels = { "app.kubernetes.io/name": proxyName };
const healthPort = 4284;

/**
 * Proxies of their own. They have no rights in the cluster, and a token that is only for them. Ports below 1024 are those of the Service:
 * a container whose user is not root cannot have them.
 */
function runProxies({ image, namespace }: ManifestOptions, { replicas, tcp }: Proxies): readonly object[] {
  const metadata = { name: proxyName, namespace, labels: proxyLabels };
  const raw = tcp.map(({ app, port: of, at }, i) => ({
    argument: `${app}:${of}=${firstRaw + i}`,
    port: { name: `tcp-${at}`, containerPort: firstRaw + i },
    at,
  }));
  const web = [
    { port: { name: "http", containerPort: 8080 }, at: 80 },
    { port: { name: "https", containerPort: 8443 }, at: 443 },
  ];
  const container = {
    name: proxyName,
    image,
    command: ["machines-service", "proxy"],
    args: [
      ["--service", `http://${name}:${port}`, "--token-file", "/token/token"],
      ["--http", "8080", "--https", "8443", "--health", `0.0.0.0:${healthPort}`, "--drain", "25"],
      ...raw.map(({ argument }) => ["--tcp", argument]),
    ],
    ports: [...[...web, ...raw].map((one) => one.port), { name: "health", containerPort: healthPort }],
    livenessProbe: { httpGet: { path: "/healthz", port: "health" } },
    // It is ready once it knows what the service has, and stays so while the service cannot be reached.
    readinessProbe: { httpGet: { path: "/readyz", port: "health" }, periodSeconds: 2 },
    lifecycle: noticed(5000),
    resources: { requests: { cpu: "250m", memory: "256Mi" }, limits: { memory: "1Gi" } },
    securityContext: confined,
    volumeMounts: [
      { name: "token", mountPath: "/token", readOnly: true },
      { name: "temporary", mountPath: "/tmp" },
    ],
  };
  const spec = {
    automountServiceAccountToken: false,
    // The moment to notice, the drain, and some more.
    terminationGracePeriodSeconds: 40,
    securityContext: asUser,
    containers: [container],
    volumes: [
      { name: "token", secret: { secretName: proxyName, defaultMode: 0o440 } },
      { name: "temporary", emptyDir: {} },
    ],
  };
  return [
    ...replicated(replicas, proxyLabels, metadata, spec),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: {
        type: "LoadBalancer",
        selector: proxyLabels,
        ports: [...web, ...raw].map((one) => ({ name: one.port.name, port: one.at, targetPort: one.port.name })),
      },
    },
  ];
}

/** What the Pod of a process alone and that of a member differ in. */
interface Particulars {
  readonly args: readonly (readonly string[])[];
  readonly env: readonly object[];
  readonly mounts: readonly object[];
  readonly volumes: readonly object[];
  /** Further fields of the container. */
  readonly container: object;
}

/** The user of all containers. */
const asUser = {
  runAsNonRoot: true,
  runAsUser: 1000,
  runAsGroup: 1000,
  fsGroup: 1000,
  seccompProfile: { type: "RuntimeDefault" },
};

const confined = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
};

/** The first port of containers for raw ports of Apps. */
export const firstRaw = 20_000;

type PodOptions = Omit<ManifestOptions, "storage">;

function podOf(
  { image, ingressClass: wanted, acme, clusterIssuer, clusters = [], postgres, postgresBackup, proxies }: PodOptions,
  more: Particulars,
): object {
  const ingressClass = proxies ? "none" : wanted;
  const secrets = [...new Set(clusters.map(({ secret }) => secret))];
  return {
    serviceAccountName: name,
    // A service ends within five seconds; a hand-over takes one more.
    terminationGracePeriodSeconds: 30,
    securityContext: asUser,
    containers: [
      {
        name,
        image,
        command: ["machines-service", "start"],
        // Clients in the cluster reach it without TLS; put an Ingress with TLS before it for others.
        args: [
          ["--data", "/data/service", "--runtime", "kubernetes"],
          ["--listen", `0.0.0.0:${port}`, "--allow-remote"],
          ...more.args,
          ...(ingressClass === undefined ? [] : [["--ingress-class", ingressClass]]),
          ...(acme === undefined ? [] : [["--acme", acme]]),
          // Proxies ask the service by themselves.
          ...(acme === undefined || proxies ? [] : [["--acme-address", `${name}:${port}`]]),
          ...(clusterIssuer === undefined
            ? []
            : [["--certificates", "cert-manager", "--cluster-issuer", clusterIssuer]]),
          ...clusters.map(({ region, secret }) => ["--kubeconfig", `${region}=/clusters/${secret}/kubeconfig`]),
          ...(postgres === undefined ? [] : [["--postgres", postgres]]),
          ...(postgresBackup === undefined ? [] : [["--postgres-backup", postgresBackup.at]]),
        ],
        ...(postgresBackup === undefined ? {} : { envFrom: [{ secretRef: { name: postgresBackup.secret } }] }),
        env: [{ name: "HOME", value: "/data" }, ...more.env],
        ports: [{ name: "http", containerPort: port }],
        // A process alone waits for the lease of a Pod that was killed, and reads its whole database.
        startupProbe: { httpGet: { path: "/healthz", port: "http" }, periodSeconds: 1, failureThreshold: 300 },
        livenessProbe: { httpGet: { path: "/healthz", port: "http" } },
        readinessProbe: { httpGet: { path: "/readyz", port: "http" }, periodSeconds: 2 },
        ...more.container,
        resources: { requests: { cpu: "500m", memory: "512Mi" }, limits: { memory: "2Gi" } },
        securityContext: confined,
        volumeMounts: [
          { name: "data", mountPath: "/data" },
          { name: "temporary", mountPath: "/tmp" },
          ...secrets.map((secret, i) => ({ name: `cluster-${i}`, mountPath: `/clusters/${secret}`, readOnly: true })),
          ...more.mounts,
        ],
      },
    ],
    volumes: [
      { name: "temporary", emptyDir: {} },
      ...secrets.map((secretName, i) => ({ name: `cluster-${i}`, secret: { secretName, defaultMode: 0o440 } })),
      ...more.volumes,
    ],
  };
}
