// The Services of the tests' cluster, which Pods reach at their names.
import { describe, expect, inject, test } from "vitest";
import { image } from "../runtime/image.ts";
import { onCluster } from "./clusters.ts";
import { realRegion } from "./nodes.ts";

describe.runIf(inject("hasRealNode"))("on a real node", () => {
  test("a Machine reaches an App of its network at the App's name, and no name that does not exist", async () => {
    const app = await onCluster({ nearest: realRegion });
    const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port: 80, handlers: ["http"] }] }];
    const [one, other] = [await app.create({ image, services }), await app.create({ image })];
    for (const id of [one, other]) await app.reaches(id, "started");
    const get = async (url: string) => (await app.post(other, "exec", { command: ["get", url] })).body;
    await expect.poll(async () => (await get("http://web/")).stdout).toContain(`${one} of web`);
    expect((await get("http://nosuch/")).exit_code).not.toBe(0);
  });
});
