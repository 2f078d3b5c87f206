// Certificates from cert-manager: a Certificate for each hostname. Its key is read once it is issued, so that it is sealed in the store
// like every other one, and serves wherever the App's Ingress is.
import type { KubernetesObject } from "@kubernetes/client-node";
import type { CertificateIssuer, IssueProblem, IssuerFactory, IssuerHost } from "../certificateIssuer.ts";
import type { RuntimeHost } from "../runtime.ts";
import { Steps } from "../steps.ts";
import { ofCluster, type Cluster } from "./cluster.ts";
import {
  annotations,
  certificateGroup,
  certificateNamespace,
  certificatesIn,
  hashOf,
  kinds,
  labels,
  selectorOf,
  type Kind,
} from "./names.ts";
import { Watched } from "./watched.ts";

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

/** A Certificate, as far as the service reads it. */
interface Certificate extends KubernetesObject {
  readonly status?: {
    readonly conditions?: readonly Condition[];
    /** Rises each time that it is issued. */
    readonly revision?: number;
  };
}

/** The Certificates of a service. */
export class CertManager {
  readonly #cluster: Cluster;
  readonly #host: RuntimeHost;
  readonly #clusterIssuer: string;
  readonly #namespace: string;
  readonly #kind: Kind;
  readonly #certificates: Watched<Certificate>;
  readonly #steps: Steps;
  /** The subjects that the service has requested, and has no answer for. */
  readonly #open = new Set<string>();
  #issuerHost: IssuerHost | undefined;

  constructor(cluster: Cluster, host: RuntimeHost, clusterIssuer: string) {
    this.#cluster = cluster;
    this.#host = host;
    this.#clusterIssuer = clusterIssuer;
    this.#namespace = certificateNamespace(cluster.namespace);
    this.#kind = certificatesIn(this.#namespace);
    const seen = ({ metadata }: Certificate, isGone: boolean): void => {
      const subject = metadata?.annotations?.[annotations.hostname];
      if (subject === undefined) return;
      // Others have removed it: it is requested again, unless its hostname is gone.
      if (isGone) this.#open.add(subject);
      this.#steps.changed(subject);
    };
    this.#certificates = new Watched<Certificate>(cluster, this.#kind, selectorOf(host.dataId), host.log, seen);
    this.#steps = new Steps(host, {
      ...ofCluster,
      kind: "certificate",
      step: async (subject) => {
        await this.#step(subject);
        return false;
      },
    });
  }

  readonly issuer: IssuerFactory = (issuerHost): CertificateIssuer => {
    this.#issuerHost = issuerHost;
    return {
      name: `cert-manager/${this.#clusterIssuer}`,
      needsOwnership: true,
      request: ({ subject }) => {
        if (this.#open.has(subject)) this.#refuse(subject, "CERTIFICATE_PENDING", "cert-manager has not issued it yet");
        this.#open.add(subject);
        this.#steps.changed(subject);
      },
    };
  };

  begin(): Promise<void> {
    return this.#certificates.begin();
  }

  /** Looks at all Certificates: their hostnames may be gone, or they were renewed meanwhile. */
  lookAtAll(): void {
    for (const { metadata } of this.#certificates.all())
      this.#steps.changed(metadata?.annotations?.[annotations.hostname] ?? "");
  }

  /** The hostnames of an App have changed. */
  appChanged(app: string): void {
    for (const { metadata } of this.#certificates.all()) {
      const subject = metadata?.annotations?.[annotations.hostname] ?? "";
      if (subject.startsWith(`${app}/`)) this.#steps.changed(subject);
    }
  }

  async close(): Promise<void> {
    await this.#certificates.close();
    await this.#steps.close();
  }

  async #step(subject: string): Promise<void> {
    const name = `certificate-${hashOf(subject)}`;
    const found = this.#certificates.get(name, this.#namespace);
    if (!this.#isWanted(subject)) return this.#remove(subject, name, found);
    if (!found) {
      if (this.#open.has(subject)) await this.#apply(subject, name);
      return;
    }
    const { metadata, status = {} } = found;
    const { conditions = [], revision } = status;
    const isReady = conditions.some(({ type, status: is }) => type === "Ready" && is === "True");
    const isNew = metadata?.annotations?.[annotations.stored] !== String(revision);
    if (isReady && (isNew || this.#open.has(subject))) return this.#store(subject, name, revision);
    const failed = conditions.find(({ type, status: is }) => type === "Issuing" && is === "False");
    if (failed && this.#open.delete(subject))
      this.#refuse(
        subject,
        "AUTHORITY_REFUSED",
        `cert-manager could not get it: ${failed.message ?? failed.reason ?? "no reason"}`,
      );
  }

  #isWanted(subject: string): boolean {
    const slash = subject.indexOf("/");
    const app = slash < 1 ? undefined : this.#host.app(subject.slice(0, slash));
    return app?.requested.includes(subject.slice(slash + 1)) === true;
  }

  async #apply(subject: string, name: string, stored?: string): Promise<void> {
    const marks = { [labels.data]: this.#host.dataId };
    // A service outside of the cluster has no manifest that creates it. It is no network of Apps, so it has none of their labels.
    if (stored === undefined)
      await this.#cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: this.#namespace } });
    const { apiVersion, kind } = this.#kind;
    await this.#cluster.apply({
      apiVersion,
      kind,
      metadata: {
        ...{ name, namespace: this.#namespace, labels: marks },
        annotations: {
          [annotations.hostname]: subject,
          ...(stored === undefined ? {} : { [annotations.stored]: stored }),
        },
      },
      spec: {
        secretName: name,
        secretTemplate: { labels: marks },
        dnsNames: [subject.slice(subject.indexOf("/") + 1)],
        issuerRef: { group: certificateGroup, kind: "ClusterIssuer", name: this.#clusterIssuer },
        privateKey: { algorithm: "ECDSA", size: 256, rotationPolicy: "Always" },
      },
    } as KubernetesObject);
  }

  /** Passes an issued certificate to the store, and notes that on the Certificate. */
  async #store(subject: string, name: string, revision: number | undefined): Promise<void> {
    const { "tls.crt": chain = "", "tls.key": key = "" } = (await this.#cluster.secret(name, this.#namespace)) ?? {};
    // cert-manager writes it again, and reports that.
    if (chain === "" || key === "") return;
    this.#open.delete(subject);
    this.#issuerHost?.events.issued(subject, { chain, key });
    await this.#host.settled();
    await this.#apply(subject, name, String(revision));
  }

  async #remove(subject: string, name: string, found: Certificate | undefined): Promise<void> {
    this.#open.delete(subject);
    // Before the Certificate: after a kill, only that shows that there is one.
    await this.#cluster.delete(kinds.secret, { name, namespace: this.#namespace });
    if (found) await this.#cluster.delete(this.#kind, found.metadata);
  }

  #refuse(subject: string, code: string, message: string): void {
    const name = `certificate-${hashOf(subject)}`;
    const problem: IssueProblem = {
      code,
      message,
      remediation: `See kubectl describe certificate ${name} --namespace ${this.#namespace}. cert-manager tries again by itself.`,
      isFailedCheck: false,
    };
    this.#issuerHost?.events.refused(subject, problem);
  }
}
