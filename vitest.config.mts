import { availableParallelism, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { isThorough, notNow, withKubernetes } from "./test/support/extent.mts";
import { hang, wholeRun, wholeTest } from "./test/support/patience.mts";
import { standalone } from "./test/support/standalone.mts";
import { become, forTests } from "./tools/lib/environment.mjs";

// The processes of the tests inherit it, and so do the programs that they start.
// Machines are not watched after their start, except where a test is about it: it would take seconds each time.
become({ ...forTests(process.env), MACHINES_MIN_HEALTHY_SECONDS: "0" });

// More than there are cores: most tests wait more than they compute, and a run of the CLI is several processes that wait for each
// other.
const maxWorkers = Math.max(2, availableParallelism()) + 4;

// A larger young generation: tests make much that is soon garbage, and collecting it often takes a twentieth of their time.
const execArgv = ["--min-semi-space-size=32", "--max-semi-space-size=64"];

/**
 * The longest files, which begin first: otherwise the last one runs alone, and a core is idle. Without results of an earlier run vitest
 * begins with the largest files, and some of these are small.
 */
const longest = [
  ...[
    "service/replication/commands",
    "service/replication/processes",
    "attacks/authorization",
    "service/postgres/embedded",
  ],
  ...["service/replication/members", "service/start", "faults/wholeRuns", "faults/campaign"],
  ...["fleets/killed", "fleets/rollouts", "machines/machineLeaves"],
  ...["e2e/views", "e2e/secrets", "e2e/story", "e2e/readme", "upgrade/upgrade", "e2e/promotion", "e2e/fleets"],
];
const rankOf = ({ moduleId }: TestSpecification): number => {
  const rank = longest.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
  return rank < 0 ? longest.length : rank;
};

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => rankOf(a) - rankOf(b));
  }
}

/** The tests of clusters that also run on CloudNativePG: what each imports its services from, and what takes the place of that. */
const onCnpg: Record<string, { readonly from: string; readonly to: string }> = {
  "test/service/spec/postgres.test.ts": { from: "../client.ts", to: "test/kubernetes/spec/client.ts" },
  "test/service/postgres/query.test.ts": { from: "./servers.ts", to: "test/kubernetes/spec/servers.ts" },
};

/** Not an alias: other tests on Kubernetes import files by the same names. */
const onOperator = {
  name: "services of tests on CloudNativePG",
  enforce: "pre" as const,
  resolveId(name: string, importer = "") {
    const { from, to = "" } = onCnpg[relative(import.meta.dirname, importer)] ?? {};
    return name === from ? join(import.meta.dirname, to) : undefined;
  },
};

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    // What is installed for the end-to-end tests is a lot to remove.
    teardownTimeout: hang,
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: [
            "test/{e2e,upgrade,runtime,console,kubernetes}/**",
            "test/attacks/engine/**",
            "test/plugin/standalone.test.ts",
            ...notNow,
          ],
          maxWorkers,
          execArgv,
          setupFiles: [
            "test/support/newRun.ts",
            ...(process.env["PULUMI_MACHINES_MUTANT"] ? ["test/support/mutantSetup.ts"] : []),
          ],
          // What a file imports is loaded once for all of them, which saves a third of the time.
          isolate: false,
          testTimeout: wholeTest,
          hookTimeout: wholeTest,
          expect: { poll: { timeout: hang } },
          env: {
            // What the provider writes down goes to a folder of the run, not to the user's.
            PULUMI_HOME: join(tmpdir(), `pulumi-machines-unit-${process.pid}`),
            // Hundreds of processes are started from the same sources: compiled once, each needs half the time to start.
            NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/compile"),
          },
        },
      },
      {
        // The same sentences, asked of the package as it is built: of some of them it is enough to know that it is the same.
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
          include: [`test/service/spec/${isThorough ? "**/*" : "{apps,machines,volumes}"}.test.ts`],
          maxWorkers,
          execArgv,
          setupFiles: ["test/support/newRun.ts"],
          isolate: false,
          testTimeout: wholeTest,
          hookTimeout: wholeTest,
          expect: { poll: { timeout: hang } },
        },
      },
      // The plugin as one executable, with what could differ from the script.
      ...(standalone === undefined
        ? []
        : [
            {
              test: {
                name: "standalone",
                include: [`test/plugin/${isThorough ? "*" : "{standalone,handshake,tracing}"}.test.ts`],
                globalSetup: ["test/support/standalone.mts"],
                maxWorkers,
                execArgv,
                setupFiles: ["test/support/newRun.ts"],
                isolate: false,
                testTimeout: wholeTest,
                hookTimeout: wholeTest,
                expect: { poll: { timeout: hang } },
                env: {
                  PULUMI_HOME: join(tmpdir(), `pulumi-machines-standalone-${process.pid}`),
                  PULUMI_MACHINES_STANDALONE: standalone,
                },
              },
            },
          ]),
      {
        // The console in a browser, which is found or installed for the run.
        test: {
          name: "console",
          include: ["test/console/**/*.test.ts"],
          exclude: notNow,
          globalSetup: ["test/console/globalSetup.ts"],
          setupFiles: ["test/support/newRun.ts"],
          maxWorkers,
          execArgv,
          isolate: false,
          testTimeout: wholeTest,
          hookTimeout: wholeTest,
          expect: { poll: { timeout: hang } },
        },
      },
      {
        // Real containers, on an engine that is found or started for the run. The specification tests run on them too: with
        // another client, which has the Docker runtime.
        resolve: {
          alias: [
            { find: /^\.\.\/client\.ts$/, replacement: join(import.meta.dirname, "test/runtime/spec/client.ts") },
          ],
        },
        test: {
          name: "engine",
          include: [
            "test/{runtime,attacks/engine}/**/*.test.ts",
            ...(isThorough ? ["test/service/spec/*.test.ts"] : []),
          ],
          exclude: notNow,
          globalSetup: ["test/runtime/globalSetup.ts", "test/console/globalSetup.ts"],
          setupFiles: ["test/support/newRun.ts", "test/runtime/spec/setup.ts"],
          maxWorkers,
          execArgv,
          isolate: false,
          testTimeout: wholeRun,
          hookTimeout: wholeRun,
          expect: { poll: { timeout: hang } },
        },
      },
      {
        // The specification tests of clusters on real servers: with another client, which has the embedded engine.
        resolve: {
          alias: [
            {
              find: /^\.\.\/client\.ts$/,
              replacement: join(import.meta.dirname, "test/service/postgres/spec/client.ts"),
            },
          ],
        },
        test: {
          name: "servers",
          // They take minutes.
          include: isThorough ? ["test/service/spec/postgres.test.ts"] : [],
          setupFiles: ["test/support/newRun.ts", "test/service/postgres/spec/setup.ts"],
          maxWorkers,
          execArgv,
          testTimeout: wholeTest,
          hookTimeout: wholeTest,
          expect: { poll: { timeout: hang } },
        },
      },
      {
        // The specification tests against several members: their service is a leader, and a standby gets every request.
        resolve: {
          alias: [
            {
              find: /^\.\.\/support\/startService\.ts$/,
              replacement: join(import.meta.dirname, "test/service/replication/spec/startService.ts"),
            },
          ],
        },
        test: {
          name: "members",
          include: isThorough ? ["test/service/spec/*.test.ts"] : [],
          maxWorkers,
          execArgv,
          setupFiles: ["test/support/newRun.ts", "test/service/replication/spec/setup.ts"],
          isolate: false,
          testTimeout: wholeTest,
          hookTimeout: wholeTest,
          expect: { poll: { timeout: hang } },
        },
      },
      {
        // The Kubernetes runtime on a real control plane, which takes minutes to build. The specification tests of clusters and those
        // of queries run there too, by the engine on CloudNativePG.
        plugins: [onOperator],
        test: {
          name: "kubernetes",
          include: withKubernetes ? ["test/kubernetes/**/*.test.ts", ...Object.keys(onCnpg)] : [],
          globalSetup: ["test/kubernetes/globalSetup.ts"],
          setupFiles: ["test/support/newRun.ts", "test/kubernetes/spec/setup.ts"],
          maxWorkers,
          execArgv,
          testTimeout: wholeRun,
          hookTimeout: wholeRun,
          // Several files wait for real servers at once.
          expect: { poll: { timeout: wholeTest } },
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/{e2e,upgrade}/**/*.test.ts"],
          exclude: notNow,
          globalSetup: ["test/e2e/globalSetup.ts"],
          setupFiles: ["test/support/newRun.ts"],
          maxWorkers,
          execArgv,
          isolate: false,
          // After everything else: a run of the CLI keeps a core busy.
          sequence: { groupOrder: 1 },
          testTimeout: wholeRun,
          hookTimeout: wholeRun,
          expect: { poll: { timeout: hang } },
        },
      },
    ],
  },
});
