// Bun and Deno, for the tests of programs on them: one version of each, installed once from npm into the per-user cache.
import fs from "node:fs";
import path from "node:path";
import { withLock } from "../lib/lock.mjs";
import { quiet, say, Stop, tail } from "../lib/process.mjs";
import { userCache } from "./userCache.mjs";

const VERSIONS = { bun: "1.4.4", deno: "2.9.6" };

/**
 * The executable of a runtime; or the reason why there is none.
 * @param {"bun" | "deno"} name
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<{ program: string, reason?: undefined } | { program?: undefined, reason: string }>}
 */
export async function javascriptRuntime(name, env) {
  const version = VERSIONS[name];
  const dir = path.join(userCache(name), `${name}-${version}-${process.platform}-${process.arch}`);
  const program = path.join(dir, "node_modules/.bin", name);
  if (fs.existsSync(dir)) return { program };
  return withLock(`${dir}.lock`, `installing ${name}`, async () => {
    if (fs.existsSync(dir)) return { program }; // another set-up was faster
    say(`Installing ${name} ${version} from npm, once …`);
    const temporary = fs.mkdtempSync(`${dir}.tmp-`);
    try {
      fs.writeFileSync(path.join(temporary, "package.json"), JSON.stringify({ private: true }));
      // Its script puts the executable for this computer into place.
      const args = ["install", "--no-audit", "--no-fund", "--ignore-scripts=false", `${name}@${version}`];
      const { code, output } = await quiet("npm", args, { cwd: temporary, env, alive: `still installing ${name}` });
      if (code !== 0 && /ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|E403|E404|EBADPLATFORM|network/.test(output))
        return { reason: `npm cannot install ${name} ${version} on this computer` };
      if (code !== 0) throw new Stop(`${tail(output)}\nInstalling ${name} ${version} failed.`);
      const started = await quiet(path.join(temporary, "node_modules/.bin", name), ["--version"], { env });
      if (started.code !== 0) return { reason: `${name} ${version} does not start: ${tail(started.output, 1)}` };
      fs.renameSync(temporary, dir);
      return { program };
    } finally {
      fs.rmSync(temporary, { recursive: true, force: true, maxRetries: 3 });
    }
  });
}
