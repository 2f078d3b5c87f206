// Requests that Schemathesis makes up from the service's own description, sent to a service in this process.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { inPythonEnvironment, pythonEnvironment } from "../setup/python.mjs";
import { inRoot } from "./paths.mjs";
import { quiet } from "./process.mjs";

// What a run costs, measured: the bounds of every parameter one by one, and then some for each case an operation is given.
const COVERAGE = 7600;
const EXAMPLES = 300;
const PER_CASE = 105;

// Left out, because the interface is meant to be otherwise: a body may be of the right form and still be refused, what was
// deleted is shown for a while, and what was made need not have a lease.
const NOT_CHECKED = ["positive_data_acceptance", "use_after_free", "ensure_resource_availability"];

/** Environment of Schemathesis, or why there is none. */
export const schemathesisEnvironment = (env) => pythonEnvironment(env, inRoot("tools/python/schemathesis.txt"));

/**
 * Tests a service that runs in this process and listens at `url`, with about `max` requests.
 * @returns {Promise<{ code: number, output: string, requests: number }>} what it found is in the output; code 0 when nothing
 */
export async function runSchemathesis({ dir, env, service, url, max, seed }) {
  const covers = max >= COVERAGE + EXAMPLES + PER_CASE;
  const cases = Math.max(1, Math.round((max - EXAMPLES - (covers ? COVERAGE : 0)) / PER_CASE));
  const work = fs.mkdtempSync(path.join(os.tmpdir(), "schemathesis-"));
  // Requests that wait for something are answered in a moment when time passes quickly.
  const hurry = setInterval(() => service.context.clock.advance(5000), 100);
  const before = service.audit.last;
  try {
    const { code, output } = await quiet(
      path.join(dir, "bin/schemathesis"),
      [
        ...["--config-file", inRoot("tools/python/schemathesis.toml"), "run", `${url}/openapi.json`],
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
