// Requests made up from the service's own description find no mistake of it, and no answer it does not describe. More of
// them: npm run test:schemathesis.
import { expect, test } from "vitest";
import { runSchemathesis, schemathesisEnvironment } from "../../tools/lib/schemathesis.mjs";
import { withApp } from "./client.ts";

test("a thousand requests find nothing", async ({ skip }) => {
  const { dir, reason } = await schemathesisEnvironment(process.env);
  if (dir === undefined) return skip(`Schemathesis cannot run here: ${reason}`);
  const { service, url } = await withApp();
  const found = await runSchemathesis({ dir, env: process.env, service, url, max: 1000, seed: 1 });
  expect(found.code, found.output).toBe(0);
  expect(found.requests).toBeGreaterThan(700);
  const succeeded = service.audit.after(0).filter(({ status }) => status !== null && status < 300);
  expect(new Set(succeeded.map(({ operation }) => operation)).size).toBeGreaterThan(40);
});
