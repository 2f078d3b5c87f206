// Rules that every answer follows.
import { expect, test } from "vitest";
import { withApp } from "../client.ts";

test("every answer has a request id under both names, including refusals", async () => {
  const { call, url } = await withApp();
  const answers = [
    await call("GET", "/apps/web"),
    await call("GET", "/apps/nope"),
    await call("GET", "/nowhere"),
    await fetch(`${url}/v1/apps/web`),
  ];
  const ids = answers.map(({ headers }) => headers.get("svc-request-id"));
  expect(new Set(ids).size).toBe(4);
  for (const [i, { headers }] of answers.entries()) {
    expect(ids[i]).toBeTruthy();
    expect(headers.get("fly-request-id")).toBe(ids[i]);
  }
});
