// Requests generated from the service's description find no server error, and no undescribed answer. For more: npm run
// test:schemathesis.
import { expect, test } from "vitest";
import { runSchemathesis, schemathesisEnvironment } from "../../tools/lib/schemathesis.mjs";
import { wholeTest } from "../support/patience.mts";
import { withApp } from "./client.ts";

// Limits of all parameters are tested only with many requests.
const max = 9000;

test("thousands of generated requests find no error", { timeout: 8 * wholeTest }, async ({ skip }) => {
  const { dir, reason } = await schemathesisEnvironment(process.env);
  if (dir === undefined) return skip(`Schemathesis cannot run here: ${reason}`);
  const { service, url } = await withApp();
  const found = await runSchemathesis({ dir, env: process.env, service, url, max, seed: 1 });
  expect(found.code, found.output).toBe(0);
  expect(found.requests).toBeGreaterThan(max * 0.7);
  const succeeded = service.audit.after(0).filter(({ status }) => status !== null && status < 300);
  expect(new Set(succeeded.map(({ operation }) => operation)).size).toBeGreaterThan(40);
});
