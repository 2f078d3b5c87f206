// Images of the engine: found before a version is created, fetched when it is prepared.
import type Dockerode from "dockerode";
import { parseImageReference } from "../../../api/image.ts";
import { refuse } from "../../refusal.ts";
import type { FoundImage, Subject } from "../runtime.ts";
import { credentialsFor } from "./credentials.ts";
import { allowing, engineGone, isAnswered, reasonOf, type Engine } from "./engine.ts";

interface Inspected {
  readonly Id: string;
  readonly RepoDigests?: readonly string[] | null;
  readonly Config?: { readonly Labels?: Readonly<Record<string, string>> | null } | null;
}

/** The name of a repository as engines write it: without the defaults that our references spell out. */
const shortName = (repository: string): string => repository.replace(/^docker\.io\/(?:library\/)?/, "");

const longName = (text: string): string => {
  const { registry = "docker.io", repository } = parseImageReference(text) ?? { repository: text };
  return `${registry}/${registry !== "docker.io" || repository.includes("/") ? repository : `library/${repository}`}`;
};

/** The digest by which a registry knows an image; of an image that only the engine has, its id. */
function digestOf({ Id, RepoDigests }: Inspected, repository: string): string {
  const named = (RepoDigests ?? []).map((one) => one.split("@")).find(([name = ""]) => longName(name) === repository);
  return named?.[1] ?? Id;
}

const inspect = async ({ docker }: Engine, name: string): Promise<Inspected | undefined> =>
  (await allowing([400, 404], docker.getImage(name).inspect())) as Inspected | undefined;

/** The image that a digest means: of the registry, or the id of an image that only the engine has. */
const byDigest = async (engine: Engine, repository: string, digest: string): Promise<Inspected | undefined> =>
  (await inspect(engine, `${shortName(repository)}@${digest}`)) ?? inspect(engine, digest);

/**
 * Finds an image. ASSUMED: an image that the engine has is used, as `docker run` does, also if the registry has moved its tag.
 * Otherwise the registry is asked, and nothing is fetched yet.
 * @throws Refusal 400 if there is no such image, 503 if the engine does not answer.
 */
export async function findImage(engine: Engine, image: string): Promise<FoundImage> {
  const { registry = "docker.io", digest } = parseImageReference(image) ?? {};
  const repository = longName(image);
  try {
    const local = digest === undefined ? await inspect(engine, image) : await byDigest(engine, repository, digest);
    if (local) return { digest: digest ?? digestOf(local, repository), labels: local.Config?.Labels ?? {} };
    const authconfig = await credentialsFor(registry);
    const { Descriptor } = await engine.docker
      .getImage(image)
      .distribution(authconfig ? { authconfig: authconfig as Dockerode.AuthConfig } : {});
    return { digest: Descriptor.digest, labels: {} };
  } catch (error) {
    if (!isAnswered(error)) throw engineGone(error);
    throw refuse(
      400,
      `invalid config.image, got ${JSON.stringify(image.slice(0, 200))}, neither the engine nor the registry has it (${reasonOf(error)})`,
    );
  }
}

/** The id of a Machine's image in the engine; fetches the image if it is not there. */
export async function fetchImage(engine: Engine, machine: Subject): Promise<string> {
  const { repository, digest, config } = machine;
  const local = await byDigest(engine, repository, digest);
  if (local) return local.Id;
  const { registry = "docker.io" } = parseImageReference(config.image) ?? {};
  const authconfig = await credentialsFor(registry);
  const name = `${shortName(repository)}@${digest}`;
  const progress = await engine.docker.pull(name, authconfig ? { authconfig } : {});
  await ended(engine.docker, progress);
  const fetched = await inspect(engine, name);
  if (!fetched) throw new Error(`the engine does not have ${name} after fetching it`);
  return fetched.Id;
}

/** Makes an image of an archive. `changes` are lines of a Dockerfile. */
export async function importImage(
  docker: Dockerode,
  name: string,
  archive: Buffer,
  changes: readonly string[] = [],
): Promise<void> {
  const [repo, tag] = name.split(":");
  // Its types know neither buffers nor these options, and that it returns a promise.
  const importing: unknown = docker.importImage(archive as never, { repo, tag, changes } as never);
  await ended(docker, (await importing) as NodeJS.ReadableStream);
}

/** Resolves when the engine has reported the end of its work. */
const ended = (docker: Dockerode, progress: NodeJS.ReadableStream): Promise<void> =>
  new Promise((resolve, reject) => {
    docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve()));
  });
