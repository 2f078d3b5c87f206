// The object storage of Postgres clusters, as the operator takes it: there it keeps an archive of all changes, and the backups.
import type { KubernetesObject } from "@kubernetes/client-node";
import { nameOf, postgresLabels } from "./names.ts";

/** A bucket with the interface of S3. */
export interface ObjectStore {
  /** Where objects are: `s3://BUCKET`, and a prefix. */
  readonly path: string;
  /** URL of the server. */
  readonly endpoint: string;
  /** The credentials, and the region if one is given, by the names of their variables. */
  readonly variables: Readonly<Record<string, string>>;
}

/** The variables that the operator knows, and what it calls them. */
const known = {
  AWS_ACCESS_KEY_ID: "accessKeyId",
  AWS_SECRET_ACCESS_KEY: "secretAccessKey",
  AWS_SESSION_TOKEN: "sessionToken",
  AWS_DEFAULT_REGION: "region",
} as const;

/** The Secret with the credentials, which the operator reads in the namespace of a cluster. */
const secretName = "postgres-backup";

const usedOf = ({ variables }: ObjectStore) =>
  Object.entries(known).flatMap(([variable, field]) => {
    const value = variables[variable];
    return value === undefined ? [] : [{ variable, field, value }];
  });

/** The Secret. */
export const storeSecret = (
  { dataId, namespace }: { readonly dataId: string; readonly namespace: string },
  store: ObjectStore,
): KubernetesObject => {
  const secret = {
    type: "Opaque",
    stringData: Object.fromEntries(usedOf(store).map(({ variable, value }) => [variable, value])),
  };
  return {
    ...{ apiVersion: "v1", kind: "Secret", ...secret },
    metadata: { name: secretName, namespace, labels: { [postgresLabels.data]: dataId } },
  };
};

/** The part of a Cluster. */
export const barmanStore = (dataId: string, id: string, store: ObjectStore) => ({
  destinationPath: `${store.path}/${dataId}`,
  endpointURL: store.endpoint,
  serverName: nameOf(id),
  s3Credentials: Object.fromEntries(
    usedOf(store).map(({ variable, field }) => [field, { name: secretName, key: variable }]),
  ),
  wal: { compression: "gzip" },
  data: { compression: "gzip", immediateCheckpoint: true },
});
