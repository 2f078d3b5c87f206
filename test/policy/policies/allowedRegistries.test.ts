import { describe, expect, test } from "vitest";
import { allowedRegistries } from "../../../policy/policies/allowedRegistries.ts";
import { check, unknownText } from "../../support/policies.ts";

const digest = `sha256:${"0123456789abcdef".repeat(4)}`;
const machine = (image: string, containers: string[] = []) => ({
  app: "shop",
  config: { image, containers: containers.map((image, i) => ({ name: `c${i}`, image })) },
});
const run = (image: string, ...registries: string[]) =>
  check(allowedRegistries, "Machine", machine(image), { config: { registries } });

describe("allowed-registries", () => {
  test("the policy accepts everything until it is configured", async () => {
    expect(await check(allowedRegistries, "Machine", machine("evil.example/x"))).toEqual({ violations: [] });
  });

  test.each([
    ["registry.example.com/shop:1", "registry.example.com"],
    ["registry.example.com/team/shop", "registry.example.com/"],
    [`registry.example.com/team/shop@${digest}`, "registry.example.com/team"],
    ["registry.example.com/team/shop:1", "registry.example.com/team/shop"],
    [`registry.example.com/team/shop:1@${digest}`, "registry.example.com/team/shop"],
    ["registry.example.com:5000/shop", "registry.example.com:5000"],
    ["localhost:5000/shop", "localhost:5000"],
    ["localhost/shop", "localhost"],
    ["eu.registry.example.com/shop", "*.example.com"],
    ["registry.example.com/team-a/shop", "registry.example.com/team-*"],
    ["nginx", "docker.io"],
    ["nginx:1.27", "docker.io/library"],
    [`nginx@${digest}`, "docker.io/library/nginx"],
    ["docker.io/nginx", "docker.io/library"],
    ["index.docker.io/library/nginx", "docker.io/library"],
    ["nginx", "index.docker.io"],
    ["acme/shop", "docker.io/acme"],
    ["evil.example/x", "*"],
  ])("the policy accepts %s if %s is allowed", async (image, registry) => {
    expect(await run(image, "other.example.com", registry)).toEqual({ violations: [] });
  });

  test.each([
    ["registry.example.com.evil.example/shop", "registry.example.com"],
    ["registry.example.community/shop", "registry.example.com"],
    ["registry.example.com/teamwork/shop", "registry.example.com/team"],
    ["registry.example.com/team/shop-evil", "registry.example.com/team/shop"],
    // Another port is another registry.
    ["registry.example.com:5000/shop", "registry.example.com"],
    // A `*` in a host does not match the path.
    ["evil.example/a.example.com/shop", "*.example.com"],
    ["evil.example/docker.io/library/nginx", "docker.io"],
    ["nginx", "docker.io/acme"],
    ["acme/shop", "docker.io/library"],
    ["registry.example.com/shop", "docker.io"],
    // Without a dot or a port it is not a host, but a name on Docker Hub.
    ["registry/shop", "registry"],
  ])("the policy refuses %s if %s is allowed, and does not quote it", async (image, registry) => {
    expect(await run(image, registry)).toEqual({
      violations: [`config.image comes from a registry that is not allowed. Allowed is ${registry}.`],
    });
  });

  test("the policy names the container, and lists all allowed registries", async () => {
    const config = { registries: ["a.example", "b.example"] };
    const inputs = machine("a.example/x", ["b.example/y", "c.example/z"]);
    expect(await check(allowedRegistries, "Machine", inputs, { config, binding: "pulumi-machines-plugin" })).toEqual({
      violations: [
        "config.containers[1].image comes from a registry that is not allowed. Allowed are a.example, b.example.",
      ],
    });
  });

  test("the policy continues after an unknown image", async () => {
    const config = { registries: ["a.example"] };
    expect(await check(allowedRegistries, "Machine", machine(unknownText, ["c.example/z"]), { config })).toEqual({
      violations: [expect.stringContaining("config.containers[0].image")],
      unknown: expect.stringMatching(/^config\.image is known only at the update/),
    });
  });

  test("the policy refuses unknown settings", async () => {
    const config = { registrys: ["a.example"] };
    await expect(check(allowedRegistries, "Machine", machine("x"), { config })).rejects.toThrow(
      'did you mean "registries"?',
    );
  });
});
