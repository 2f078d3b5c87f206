// References of images, by the grammar of container registries (docs/interface.md#images).
import { z } from "zod";

const word = "[a-z0-9]+";
const plain = `${word}(?:(?:__?|-+)${word})*`;
const component = `${word}(?:(?:\\.|__?|-+)${word})*`;
const path = `${component}(?:/${component})*`;
const label = "[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*";
const port = ":[0-9]+";
// ASSUMED: what comes before the first slash is a registry if it has a dot or a port, or is `localhost`. Without one of them,
// it belongs to the repository, as in container tools.
const registry = `(?:localhost|${label}(?:\\.${label})+|\\[[0-9A-Fa-f:]+\\])(?:${port})?|${label}${port}`;
const tag = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}";
// ASSUMED: a digest is of sha256, sha384 or sha512, the algorithms that registries have.
const digest = "sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}";

/** The form of a reference: registry, repository (behind a registry, and without one), tag and digest. */
export const imagePattern = new RegExp(
  `^(?:(${registry})/(${path})|(${component}|${plain}/${path}))(?::(${tag}))?(?:@(${digest}))?$`,
);

const longestRepository = 255;

/** A parsed reference; what it leaves out is undefined. */
export interface ImageReference {
  readonly registry: string | undefined;
  readonly repository: string;
  readonly tag: string | undefined;
  readonly digest: string | undefined;
}

/** The parts of a reference; undefined if the text is none. */
export function parseImageReference(text: string): ImageReference | undefined {
  const [, registry, behind, alone, tag, digest] = imagePattern.exec(text) ?? [];
  const repository = behind ?? alone;
  if (repository === undefined || repository.length > longestRepository) return undefined;
  return { registry, repository, tag, digest };
}

/** Why a text is no reference of an image, as a phrase with an example; undefined if it is one. */
export const imageProblem = (text: string): string | undefined =>
  parseImageReference(text) === undefined
    ? `must be an image such as "registry.example.com/web:v3" or "web@sha256:…"; ${mistake(text)}`
    : undefined;

/** A reference of an image, for values that have no older form. */
export const imageReference = z.string().check(({ value, issues }) => {
  const message = imageProblem(value);
  if (message !== undefined) issues.push({ code: "custom", message, input: value });
});

const matches = (form: string, text: string): boolean => new RegExp(`^(?:${form})$`).test(text);

/** The first part of a reference that is wrong. */
function mistake(text: string): string {
  const at = text.indexOf("@");
  const name = at < 0 ? text : text.slice(0, at);
  const slash = name.indexOf("/");
  const first = slash < 0 ? "" : name.slice(0, slash);
  const isHosted = /[.:]/.test(first) || first === "localhost";
  const rest = isHosted ? name.slice(slash + 1) : name;
  const colon = rest.lastIndexOf(":");
  const isTagged = colon > rest.lastIndexOf("/");
  const repository = isTagged ? rest.slice(0, colon) : rest;
  if (/\s/.test(text)) return "it has no spaces";
  if (isHosted && !matches(registry, first)) return "a registry is a host name, and a port if needed";
  if (repository === "") return "the repository is missing";
  if (/[A-Z]/.test(repository)) return "a repository is lowercase";
  if (repository.length > longestRepository) return `a repository has at most ${longestRepository} characters`;
  if (!matches(path, repository))
    return 'a repository is of a-z and 0-9, with ".", "_", "__" or "-" between them, in parts separated by "/"';
  if (isTagged && !matches(tag, rest.slice(colon + 1)))
    return 'a tag has 1 to 128 letters, digits, "_", "." and "-", and does not begin with "." or "-"';
  return "a digest is sha256: and 64 of 0-9 and a-f";
}
