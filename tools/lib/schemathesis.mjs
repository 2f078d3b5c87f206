// Requests that Schemathesis generates from the service's description, sent to a service in this process.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { inPythonEnvironment, pythonEnvironment } from "../setup/python.mjs";
import { inRoot } from "./paths.mjs";
import { quiet } from "./process.mjs";

// The measured cost of a run: the limits of every parameter, plus some requests for each case of an operation.
const COVERAGE = 7600;
const EXAMPLES = 300;
const PER_CASE = 105;

// Excluded, because the interface intends otherwise: a well-formed body may be refused, a deleted object is shown for a
// while, and a created object need not have a lease.
const NOT_CHECKED = ["positive_data_acceptance", "use_after_free", "ensure_resource_availability"];

/** Environment of Schemathesis, or the reason why there is none. */
export const schemathesisEnvironment = (env) => pythonEnvironment(env, inRoot("tools/python/schemathesis.txt"));

/**
 * Tests a service that runs in this process and listens at `url`, with about `max` requests.
 * @returns {Promise<{ code: number, output: string, requests: number }>} the output has the findings; code 0 when there are
 * none
 */
export async function runSchemathesis({ dir, env, service, url, max, seed }) {
  const covers = max >= COVERAGE + EXAMPLES + PER_CASE;
  const cases = Math.max(1, Math.round((max - EXAMPLES - (covers ? COVERAGE : 0)) / PER_CASE));
  const work = fs.mkdtempSync(path.join(os.tmpdir(), "schemathesis-"));
  // Long polls are answered soon if the clock is fast.
  const hurry = setInterval(() => service.context.clock.advance(5000), 100);
  const before = service.audit.last;
  // The served description leaves out spellings that the service accepts, which would look like a failure to refuse them.
  const { openapi } = await import("../../service/openapi/openapi.ts"); // only after its dependencies are installed
  const description = path.join(work, "openapi.json");
  fs.writeFileSync(description, JSON.stringify(openapi({ strict: true, lenient: true })));
  try {
    const { code, output } = await quiet(
      path.join(dir, "bin/schemathesis"),
      [
        ...["--config-file", inRoot("tools/python/schemathesis.toml"), "run", description, "--url", url],
        ...["--header", `Authorization: Bearer ${service.token}`],
        ...["--phases", ["examples", covers ? "coverage" : [], "fuzzing", "stateful"].flat().join(",")],
        ...["--max-examples", String(cases), "--seed", String(seed), "--request-timeout", "75"],
        ...["--exclude-checks", NOT_CHECKED.join(","), "--continue-on-failure"],
        ...["--generation-database", "none", "--no-color"],
      ],
      {
        cwd: work,
        alive: () => `still testing, ${service.audit.last - before} requests so far`,
        env: { ...inPythonEnvironment(dir, env), SCHEMATHESIS_HOOKS: inRoot("tools/python/schemathesis_hooks.py") },
      },
    );
    return { code, output, requests: service.audit.last - before };
  } finally {
    clearInterval(hurry);
    fs.rmSync(work, { recursive: true, force: true });
  }
}
