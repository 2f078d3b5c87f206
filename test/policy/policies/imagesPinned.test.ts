import { describe, expect, test } from "vitest";
import { imagesPinned } from "../../../policy/policies/imagesPinned.ts";
import { check, unknownText } from "../../support/policies.ts";

const digest = `sha256:${"0123456789abcdef".repeat(4)}`;
const machine = (image: string, containers: string[] = []) => ({
  app: "shop",
  config: { image, containers: containers.map((image, i) => ({ name: `c${i}`, image })) },
});

describe("images-pinned", () => {
  test.each([`registry.example.com/shop@${digest}`, `shop:1.0.0@${digest}`])("the policy accepts %s", async (image) => {
    expect(await check(imagesPinned, "Machine", machine(image, [image]))).toEqual({ violations: [] });
  });

  test.each(["shop", "shop:latest", "registry.example.com:5000/shop:1.0.0", "shop@sha256:0123"])(
    "the policy refuses %s, and does not quote it",
    async (image) => {
      const { violations } = await check(imagesPinned, "Machine", machine(image));
      expect(violations).toEqual([
        "config.image has no digest: a tag may be moved to another image. Write it as name@sha256:…; the output imageRef of the Machine, or machines of the Fleet, and `docker buildx imagetools inspect IMAGE` show the digest.",
      ]);
    },
  );

  test("the policy names the container", async () => {
    const { violations } = await check(imagesPinned, "Machine", machine(`shop@${digest}`, [`a@${digest}`, "b:1"]));
    expect(violations).toEqual([expect.stringContaining("config.containers[1].image has no digest")]);
  });

  test("the policy names every other property with an image", async () => {
    const { app, config } = machine(`shop@${digest}`);
    const volumes = [{ name: "models", image: "models:1" }];
    const files = [{ guestPath: "/etc/config", imageConfig: "config:1" }];
    const containers = [{ name: "c", image: `c@${digest}`, files }];
    const all = { app, config: { ...config, containers, volumes, files } };
    const { violations } = await check(imagesPinned, "Machine", all);
    expect(violations).toEqual([
      expect.stringContaining("config.containers[0].files[0].imageConfig has no digest"),
      expect.stringContaining("config.volumes[0].image has no digest"),
      expect.stringContaining("config.files[0].imageConfig has no digest"),
    ]);
  });

  test("the policy treats null as omitted, like the provider", async () => {
    const { app, config } = machine(`shop@${digest}`);
    const nothing = null as never;
    expect(
      await check(imagesPinned, "Machine", { app, config: { ...config, containers: nothing, volumes: [nothing] } }),
    ).toEqual({ violations: [] });
  });

  test("the policy continues after an unknown image, and reports it", async () => {
    expect(await check(imagesPinned, "Machine", machine(unknownText, ["b:1"]))).toEqual({
      violations: [expect.stringContaining("config.containers[0].image")],
      unknown:
        "config.image is known only at the update, and is checked then, before the Machine is created or changed",
    });
  });

  test("the policy applies only to Machines", async () => {
    expect(await check(imagesPinned, "App", {})).toMatchObject({ notApplicable: "it is about each Machine" });
  });
});
