// References of images, against the grammar of container registries.
import fc from "fast-check";
import { expect, test } from "vitest";
import { imagePattern, imageProblem, parseImageReference } from "../../api/image.ts";

const digest = `sha256:${"4f".repeat(32)}`;

test.each([
  ["nginx", undefined, "nginx", undefined, undefined],
  ["nginx:1.27-alpine", undefined, "nginx", "1.27-alpine", undefined],
  ["team/web_app", undefined, "team/web_app", undefined, undefined],
  ["a.b", undefined, "a.b", undefined, undefined],
  ["localhost:5000", undefined, "localhost", "5000", undefined],
  ["localhost/web", "localhost", "web", undefined, undefined],
  ["localhost:5000/web", "localhost:5000", "web", undefined, undefined],
  ["registry:5000/web:v3", "registry:5000", "web", "v3", undefined],
  ["Registry.Example.com/a/b--c/d__e.f", "Registry.Example.com", "a/b--c/d__e.f", undefined, undefined],
  ["127.0.0.1:5000/web", "127.0.0.1:5000", "web", undefined, undefined],
  ["[::1]:5000/web:v3", "[::1]:5000", "web", "v3", undefined],
  [`web@${digest}`, undefined, "web", undefined, digest],
  [`example.com:443/web:v3@${digest}`, "example.com:443", "web", "v3", digest],
  [`web@sha512:${"4f".repeat(64)}`, undefined, "web", undefined, `sha512:${"4f".repeat(64)}`],
  [`web:${"t".repeat(128)}`, undefined, "web", "t".repeat(128), undefined],
  ["r".repeat(255), undefined, "r".repeat(255), undefined, undefined],
])("%s is a reference", (text, registry, repository, tag, itsDigest) => {
  expect(parseImageReference(text)).toEqual({ registry, repository, tag, digest: itsDigest });
  expect(imageProblem(text)).toBeUndefined();
});

test.each([
  ["", "the repository is missing"],
  ["hello world", "it has no spaces"],
  [" nginx", "it has no spaces"],
  ["nginx\n", "it has no spaces"],
  ["nginx:v 3", "it has no spaces"],
  [":v3", "the repository is missing"],
  [`@${digest}`, "the repository is missing"],
  ["example.com/", "the repository is missing"],
  ["example.com/:v3", "the repository is missing"],
  ["Nginx", "a repository is lowercase"],
  ["Team/web", "a repository is lowercase"],
  ["example.com/Web:v3", "a repository is lowercase"],
  ["a//b", 'a repository is of a-z and 0-9, with ".", "_", "__" or "-" between them, in parts separated by "/"'],
  ["/web", "a repository is of"],
  ["web/", "a repository is of"],
  ["-web", "a repository is of"],
  ["web_", "a repository is of"],
  ["a___b", "a repository is of"],
  ["a..b", "a repository is of"],
  ["https://example.com/web", "a registry is a host name, and a port if needed"],
  ["ex_ample.com/web", "a registry is a host name"],
  ["example.com:x/web", "a registry is a host name"],
  ["nginx:", 'a tag has 1 to 128 letters, digits, "_", "." and "-", and does not begin with "." or "-"'],
  ["nginx:-v3", "a tag has"],
  ["nginx:v3:v4", "a repository is of"],
  [`web:${"t".repeat(129)}`, "a tag has"],
  ["nginx@", "a digest is sha256: and 64 of 0-9 and a-f"],
  ["nginx@sha256:4f", "a digest is"],
  [`nginx@md5:${"4f".repeat(16)}`, "a digest is"],
  [`nginx@${digest.toUpperCase()}`, "a digest is"],
  [`nginx@${digest}:v3`, "a digest is"],
  ["r".repeat(256), "a repository has at most 255 characters"],
])("%j is none, and its first mistake is named", (text, mistake) => {
  expect(parseImageReference(text)).toBeUndefined();
  expect(imageProblem(text)).toContain(
    `must be an image such as "registry.example.com/web:v3" or "web@sha256:…"; ${mistake}`,
  );
});

test("what the pattern takes is put together again from its parts", () => {
  fc.assert(
    fc.property(fc.stringMatching(imagePattern), (text) => {
      const { registry, repository = "", tag, digest: itsDigest } = parseImageReference(text) ?? {};
      fc.pre(repository.length > 0); // not for a repository that is too long
      const parts = [
        registry === undefined ? "" : `${registry}/`,
        repository,
        tag === undefined ? "" : `:${tag}`,
        itsDigest === undefined ? "" : `@${itsDigest}`,
      ];
      expect(parts.join("")).toBe(text);
    }),
  );
});

test("a long text is refused in a moment", () => {
  for (const text of [
    "a".repeat(65_536),
    "a-".repeat(32_768),
    "a.".repeat(32_768),
    `${"a/".repeat(32_768)}A`,
    ":".repeat(65_536),
  ])
    expect(imageProblem(text)).toBeDefined();
});
