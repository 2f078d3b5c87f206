// What runs the service in a Kubernetes cluster: one Pod with a volume, and the rights that the Kubernetes runtime needs.

const name = "machines-service";
const port = 4280;

/** What a manifest depends on. */
export interface ManifestOptions {
  readonly image: string;
  readonly namespace: string;
  /** Size of the volume with the data, such as `10Gi`. */
  readonly storage: string;
  readonly storageClass?: string;
  /** Class of the Ingresses for hostnames. */
  readonly ingressClass?: string;
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
  { apiGroups: ["snapshot.storage.k8s.io"], resources: ["volumesnapshots"], verbs: watched },
];

/** The objects, in the order in which they are to be created. */
export function manifest({
  image,
  namespace,
  storage,
  storageClass,
  ingressClass,
}: ManifestOptions): readonly object[] {
  const labels = { "app.kubernetes.io/name": name };
  const metadata = { name, namespace, labels };
  const rbac = "rbac.authorization.k8s.io";
  const roleOf = (kind: string) => ({ apiGroup: rbac, kind, name });
  const subjects = [{ kind: "ServiceAccount", name, namespace }];
  // Of two services in a cluster, each has its own rights.
  const ofCluster = { name: `${name}-${namespace}`, labels };
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels } },
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    { apiVersion: `${rbac}/v1`, kind: "ClusterRole", metadata: ofCluster, rules },
    {
      apiVersion: `${rbac}/v1`,
      kind: "ClusterRoleBinding",
      metadata: ofCluster,
      roleRef: { ...roleOf("ClusterRole"), name: ofCluster.name },
      subjects,
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: "Role",
      metadata,
      rules: [{ apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["get", "create", "update"] }],
    },
    { apiVersion: `${rbac}/v1`, kind: "RoleBinding", metadata, roleRef: roleOf("Role"), subjects },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: { selector: labels, ports: [{ name: "http", port, targetPort: "http" }] },
    },
    {
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata,
      spec: {
        serviceName: name,
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: name,
            terminationGracePeriodSeconds: 30,
            securityContext: {
              runAsNonRoot: true,
              runAsUser: 1000,
              runAsGroup: 1000,
              fsGroup: 1000,
              seccompProfile: { type: "RuntimeDefault" },
            },
            containers: [
              {
                name,
                image,
                command: ["machines-service", "start"],
                // Clients in the cluster reach it without TLS; put an Ingress with TLS before it for others.
                args: [
                  ...["--data", "/data/service", "--runtime", "kubernetes"],
                  ...["--listen", `0.0.0.0:${port}`, "--allow-remote"],
                  ...(ingressClass === undefined ? [] : ["--ingress-class", ingressClass]),
                ],
                env: [{ name: "HOME", value: "/data" }],
                ports: [{ name: "http", containerPort: port }],
                // It waits for the lease of a Pod that was killed, and reads its whole database.
                startupProbe: { httpGet: { path: "/healthz", port: "http" }, periodSeconds: 1, failureThreshold: 300 },
                livenessProbe: { httpGet: { path: "/healthz", port: "http" } },
                readinessProbe: { httpGet: { path: "/readyz", port: "http" }, periodSeconds: 2 },
                resources: { requests: { cpu: "500m", memory: "512Mi" }, limits: { memory: "2Gi" } },
                securityContext: {
                  allowPrivilegeEscalation: false,
                  readOnlyRootFilesystem: true,
                  capabilities: { drop: ["ALL"] },
                },
                volumeMounts: [
                  { name: "data", mountPath: "/data" },
                  { name: "temporary", mountPath: "/tmp" },
                ],
              },
            ],
            volumes: [{ name: "temporary", emptyDir: {} }],
          },
        },
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
    },
  ];
}
