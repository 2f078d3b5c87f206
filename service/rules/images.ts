// Parses image references, and looks up digests of tags in the table of images.
import { refuse } from "../refusal.ts";
import type { Store } from "../store/database.ts";

/** A parsed image reference; `docker.io` and `library/` are added, as in container tools. */
export interface Image {
  readonly registry: string;
  readonly repository: string;
  readonly tag: string | undefined;
  readonly digest: string | undefined;
}

/** Parses a reference. Without a tag and a digest it means the tag `latest`. */
export function parseImage(image: string): Image {
  const [reference = "", digest] = image.split("@", 2);
  const slash = reference.indexOf("/");
  const first = slash < 0 ? "" : reference.slice(0, slash);
  const hosted = first.includes(".") || first.includes(":") || first === "localhost";
  const path = hosted ? reference.slice(slash + 1) : reference;
  const colon = path.lastIndexOf(":");
  const named = colon > path.lastIndexOf("/");
  const tag = named ? path.slice(colon + 1) : digest === undefined ? "latest" : undefined;
  const repository = named ? path.slice(0, colon) : path;
  return {
    registry: hosted ? first : "docker.io",
    repository: hosted || repository.includes("/") ? repository : `library/${repository}`,
    tag,
    digest,
  };
}

/** The key of an image in the table. */
export const referenceOf = ({ registry, repository, tag, digest }: Image): string =>
  `${registry}/${repository}${tag === undefined || tag === "" ? `@${digest}` : `:${tag}`}`;

/** An image of the table. */
export interface ListedImage {
  /** `registry/repository:tag`. */
  readonly reference: string;
  readonly digest: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Adds an image to the table, or moves its tag. Running Machines keep their image. */
export function listImage(store: Pick<Store, "run">, { reference, digest, labels = {} }: ListedImage): void {
  if (!/^sha256:[0-9a-f]{64}$/.test(digest))
    throw refuse(
      400,
      `invalid digest, got ${JSON.stringify(digest.slice(0, 80))}, must be sha256: and 64 hexadecimal digits`,
    );
  const sql = "INSERT INTO images VALUES (?1, ?2, ?3) ON CONFLICT (reference) DO UPDATE SET digest = ?2, labels = ?3";
  store.run(sql, referenceOf(parseImage(reference)), digest, JSON.stringify(labels));
}
