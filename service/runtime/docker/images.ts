// Images of the engine: found before a version is created, fetched when it is prepared.
import type Dockerode from "dockerode";
import { parseImageReference } from "../../../api/image.ts";
import { refuse } from "../../refusal.ts";
import type { FoundImage, Log, Subject } from "../runtime.ts";
import { credentialsFor, type Credentials } from "./credentials.ts";
import { allowing, engineGone, isUnreachable, reasonOf, type Engine } from "./engine.ts";
import { fetchProblem, usualRegistry, type Registries } from "./registries.ts";

/** Where images come from. */
export interface ImageSource {
  readonly engine: Engine;
  readonly registries: Registries;
  /** Gets what registries answer, which clients do not. */
  readonly log: Log;
}

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
export async function findImage(source: ImageSource, image: string): Promise<FoundImage> {
  const { engine, registries } = source;
  const { registry = usualRegistry, digest } = parseImageReference(image) ?? {};
  const repository = longName(image);
  const inEngine = async (): Promise<FoundImage | undefined> => {
    const found = digest === undefined ? await inspect(engine, image) : await byDigest(engine, repository, digest);
    return found && { digest: digest ?? digestOf(found, repository), labels: found.Config?.Labels ?? {} };
  };
  const refused = (why: string): Error =>
    refuse(
      400,
      `invalid config.image, got ${JSON.stringify(image.slice(0, 200))}, the engine does not have it and cannot fetch it: ${why}`,
    );
  const local = await inEngine().catch((error: unknown) => {
    throw isUnreachable(error) ? engineGone(error) : refused(reasonOf(error));
  });
  if (local) return local;
  const problem = await registries.problem(registry);
  if (problem !== undefined) throw refused(problem);
  const authconfig = await credentialsFor(registry);
  const asked = authconfig
    ? "requested with the credentials of docker login"
    : "requested without credentials; docker login saves them";
  try {
    const options = authconfig ? { authconfig: authconfig as Dockerode.AuthConfig } : {};
    const described = await allowing([404], engine.docker.getImage(image).distribution(options));
    if (described) return { digest: described.Descriptor.digest, labels: {} };
    // Podman cannot ask a registry without fetching. Of another engine, this gives the reason.
    await pull(engine, image, authconfig);
    const fetched = await inEngine();
    if (!fetched) throw new Error(`the engine does not have ${image} after fetching it`);
    return fetched;
  } catch (error) {
    if (isUnreachable(error)) throw engineGone(error);
    throw refused(`${hidden(source, image, error)} (${asked})`);
  }
}

/** Why an image could not be fetched, without what servers answered; that is in the log. */
function hidden({ log }: ImageSource, image: string, error: unknown): string {
  log.warn({ image, reason: reasonOf(error) }, "an image could not be fetched");
  return fetchProblem(reasonOf(error));
}

/**
 * The id of a Machine's image in the engine; fetches the image if it is not there.
 * @throws Error with the reason if it cannot be fetched.
 */
export async function fetchImage(source: ImageSource, machine: Subject): Promise<string> {
  const { engine, registries } = source;
  const { repository, digest, config } = machine;
  const local = await byDigest(engine, repository, digest);
  if (local) return local.Id;
  const { registry = usualRegistry } = parseImageReference(config.image) ?? {};
  const problem = await registries.problem(registry);
  if (problem !== undefined) throw new Error(problem);
  const name = `${shortName(repository)}@${digest}`;
  try {
    await pull(engine, name, await credentialsFor(registry));
    const fetched = await inspect(engine, name);
    if (!fetched) throw new Error(`the engine does not have ${name} after fetching it`);
    await addTag(engine, config.image, name);
    return fetched.Id;
  } catch (error) {
    if (isUnreachable(error)) throw error;
    throw new Error(`the image cannot be fetched: ${hidden(source, config.image, error)}`, { cause: error });
  }
}

const pull = async ({ docker }: Engine, name: string, authconfig: Credentials | undefined): Promise<void> =>
  ended(docker, await docker.pull(name, authconfig ? { authconfig } : {}));

/** Gives a fetched image the tag that it was found by, unless another image has it meanwhile. It is then found without the registry. */
async function addTag(engine: Engine, image: string, fetched: string): Promise<void> {
  const { tag = "latest", digest } = parseImageReference(image) ?? {};
  if (digest !== undefined || (await inspect(engine, image))) return;
  await engine.docker.getImage(fetched).tag({ repo: shortName(longName(image)), tag });
}

/** Makes an image of an archive. `changes` are lines of a Dockerfile. */
export async function importImage(
  docker: Dockerode,
  name: string,
  archive: Buffer,
  changes: readonly string[] = [],
): Promise<void> {
  // Its types know neither buffers nor these options, and that it returns a promise. Podman ignores a tag that is sent apart.
  const importing: unknown = docker.importImage(archive as never, { repo: name, changes } as never);
  await ended(docker, (await importing) as NodeJS.ReadableStream);
}

/** Resolves when the engine has reported the end of its work. An error is one of its reports, because its answer has begun. */
async function ended(docker: Dockerode, progress: NodeJS.ReadableStream): Promise<void> {
  const reports = await new Promise<readonly { readonly error?: string }[]>((resolve, reject) => {
    docker.modem.followProgress(progress, (error, all) => (error ? reject(error) : resolve(all)));
  });
  const reason = reports.find(({ error }) => error !== undefined)?.error;
  if (reason !== undefined) throw new Error(reason);
}
