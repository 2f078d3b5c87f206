// How much the tests cover: a sample in `npm test`, everything in `npm run test:all` (CONTRIBUTING.md#tests). Only this
// file reads the environment variables for that.

/** Whether everything is tested. */
export const isThorough = process.env["PULUMI_MACHINES_TEST_ALL"] === "1";

/** All of them, or only the sample. */
export function allOr<T>(all: readonly T[], sample: readonly T[]): readonly T[] {
  return isThorough ? all : sample;
}

/**
 * Files of `test/` that only `npm run test:all` runs. What each guarantees, other tests guarantee in process or by other commands
 * (CONTRIBUTING.md#tests); these do it on other paths, on real servers, containers and browsers, or under kills and load.
 */
const onlyInAll: readonly string[] = [
  ...["cli/console", "generated/editor"],
  ...[
    "console/{clusters,faults,help,hostile,keyboard,large,live,logs,past,pictures,problems,restart,search,terminal,tty,views}",
  ],
  ...[
    "e2e/{automation,canary,configuration,consoleCode,conversion,cost,database,drift,engineOptions,faults,functions,gallery}",
  ],
  ...["e2e/{history,hooks,identity,importFrom,interrupted,interruptions,javascriptRuntimes,keepsRunning,killedSteps}"],
  ...["e2e/{local,mcp,members,migrate,organization,packageAdd,plans,plugin,promotionBack,promotionWorkflows}"],
  ...[
    "e2e/{refreshBeforeUpdate,release,releaseFiles,releaseLanguages,repairs,replaced,restructuring,templates,together,tracing}",
  ],
  ...["e2e/{undoReplacement,userSettings,viewsElsewhere,volumes,writeOnly}"],
  ...[
    "runtime/{addresses,cli,commands,console,database,docker,engineLoss,examples,failures,kills,members,noSpace,proxy,public}",
  ],
  ...["runtime/{backup,registry,rollouts,serviceImage,ssh,upgrade,volumes,webApp}"],
  ...[
    "service/{killAtWrite,schemathesis}",
    "service/histories/*",
    "service/postgres/{failures,kills,pooler,sideBySide}",
  ],
  ...["setup/server", "e2e/production"],
  ...["service/replication/{clocks,fullDisk,histories,pooler,upgrade}", "service/watch/prometheus"],
];

/** Patterns of the files that are not run now. */
export const notNow: string[] = isThorough ? [] : onlyInAll.map((files) => `test/${files}.test.ts`);

/** Whether the runtime is tested on a Kubernetes cluster, by `npm run test:kubernetes`. */
export const withKubernetes = process.env["PULUMI_MACHINES_TEST_KUBERNETES"] === "1";
