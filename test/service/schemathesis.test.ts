// Requests made up from the service's own description find no mistake of it, and no answer it does not describe. More of
// them: npm run test:schemathesis.
import { expect, test } from "vitest";
import { runSchemathesis, schemathesisEnvironment } from "../../tools/lib/schemathesis.mjs";
import { isThorough } from "../support/extent.mts";
import { wholeTest } from "../support/patience.mts";
import { withApp } from "./client.ts";

// The bounds of every parameter are tried only where there are enough.
const max = isThorough ? 9000 : 400;

test("requests by the hundred find nothing", { timeout: isThorough ? 8 * wholeTest : wholeTest }, async ({ skip }) => {
  const { dir, reason } = await schemathesisEnvironment(process.env);
  if (dir === undefined) return skip(`Schemathesis cannot run here: ${reason}`);
  const { service, url } = await withApp();
  const found = await runSchemathesis({ dir, env: process.env, service, url, max, seed: 1 });
  expect(found.code, found.output).toBe(0);
  expect(found.requests).toBeGreaterThan(max * 0.7);
  const succeeded = service.audit.after(0).filter(({ status }) => status !== null && status < 300);
  expect(new Set(succeeded.map(({ operation }) => operation)).size).toBeGreaterThan(40);
});
