import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { hang, wholeRun, wholeTest } from "./test/support/patience.mts";

// By default it would be one less, and most tests wait more than they compute.
const maxWorkers = Math.max(2, availableParallelism());

export default defineConfig({
  test: {
    // What is installed for the end-to-end tests is a lot to remove.
    teardownTimeout: hang,
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/{e2e,upgrade}/**"],
          maxWorkers,
          setupFiles: ["test/support/newRun.ts"],
          // What a file imports is loaded once for all of them, which saves a third of the time.
          isolate: false,
          testTimeout: wholeTest,
          hookTimeout: wholeTest,
          expect: { poll: { timeout: hang } },
          // What the provider writes down goes to a folder of the run, not to the user's.
          env: { PULUMI_HOME: join(tmpdir(), `pulumi-machines-unit-${process.pid}`) },
        },
      },
      {
        // The same sentences, asked of the package as it is built.
        resolve: {
          alias: [
            {
              find: /^(\.\.\/)+service\/index\.ts$/,
              replacement: join(import.meta.dirname, "service/dist/service/index.js"),
            },
          ],
        },
        test: {
          name: "built",
          include: ["test/service/spec/**/*.test.ts"],
          maxWorkers,
          isolate: false,
          testTimeout: wholeTest,
          hookTimeout: wholeTest,
          expect: { poll: { timeout: hang } },
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/{e2e,upgrade}/**/*.test.ts"],
          globalSetup: ["test/e2e/globalSetup.ts"],
          // After everything else, and one more than there are cores: a run of the CLI keeps a core busy with several processes,
          // and many wait.
          maxWorkers: maxWorkers + 1,
          sequence: { groupOrder: 1 },
          testTimeout: wholeRun,
          hookTimeout: wholeRun,
          expect: { poll: { timeout: hang } },
        },
      },
    ],
  },
});
