// Parses image references, and looks up digests of tags in the table of images.
import { imageProblem, parseImageReference } from "../../api/image.ts";
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
  const reference = parseImageReference(image);
  if (!reference) throw refuse(400, `invalid image, got ${JSON.stringify(image.slice(0, 80))}, ${imageProblem(image)}`);
  const { registry, repository, tag, digest } = reference;
  return {
    registry: registry ?? "docker.io",
    repository: registry !== undefined || repository.includes("/") ? repository : `library/${repository}`,
    tag: tag ?? (digest === undefined ? "latest" : undefined),
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
