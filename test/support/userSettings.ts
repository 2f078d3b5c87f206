// A user's computer with settings for other work, each of which changed what a test or a command did.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const npmrc = `a-key-that-npm-does-not-know=yes
loglevel=verbose
color=always
json=true
long=true
package-lock=false
init-type=module
`;

const gitconfig = (home: string): string => `[user]
	useConfigOnly = true
[commit]
	gpgsign = true
[core]
	autocrlf = true
	hooksPath = ${home}/hooks
	excludesFile = ${home}/ignored
[init]
	defaultBranch = trunk
	templateDir = ${home}/missing
[color]
	ui = always
[url "https://example.invalid/"]
	insteadOf = /
`;

/** Variables by which a shell talks to all programs; what Pulumi works on is not among them. */
const ofShell = (home: string): Record<string, string> => ({
  HOME: home,
  // The command that runs the tests may have set it.
  npm_config_userconfig: join(home, ".npmrc"),
  NPM_CONFIG_OMIT: "dev",
  npm_config_loglevel: "silly",
  NODE_ENV: "production",
  NODE_OPTIONS: "--trace-warnings",
  // No computer has this locale, so some programs complain.
  ...{ LANG: "xx_XX.UTF-8", LC_ALL: "xx_XX.UTF-8", LANGUAGE: "de" },
  TZ: "Pacific/Apia",
  ...{ NO_COLOR: "1", FORCE_COLOR: "3", CLICOLOR_FORCE: "1", TERM: "dumb", COLUMNS: "40" },
  ...{ EDITOR: "false", VISUAL: "false", PAGER: "cat -n", BROWSER: "false" },
  ...{ GIT_DIR: join(home, "missing"), GIT_WORK_TREE: home, GIT_INDEX_FILE: join(home, "index"), GIT_TRACE: "1" },
  ...{ GIT_AUTHOR_NAME: "", GIT_AUTHOR_DATE: "never", GIT_COMMITTER_NAME: "", GIT_EDITOR: "false" },
  ...{ GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "color.ui", GIT_CONFIG_VALUE_0: "always" },
  ...{ PGSSLMODE: "verify-full", PGOPTIONS: "-c search_path=theirs", PGPORT: "9" },
  ...{ DOCKER_CONFIG: home, DOCKER_CONTEXT: "missing", DOCKER_API_VERSION: "1.12" },
  ...{ PYTHONPATH: home, PYTHONIOENCODING: "latin-1", PIP_USER: "1", PIP_REQUIRE_VIRTUALENV: "1" },
  ...{ GOOS: "plan9", GOARCH: "386", GOFLAGS: "-mod=vendor" },
  ...{ TAR_OPTIONS: "--verbose", CDPATH: "/tmp:/", POSIXLY_CORRECT: "1" },
  ...{
    CI: "true",
    GITHUB_ACTIONS: "true",
    GITHUB_ACTOR: "someone",
    GITHUB_STEP_SUMMARY: join(home, "missing/summary"),
  },
  PULUMI_PARALLEL: "1",
  PULUMI_EXPERIMENTAL: "true",
  // Of every command of Pulumi that has the option.
  ...{ PULUMI_OPTION_FILE: join(home, "state.json"), PULUMI_OPTION_SHOW_SECRETS: "true", PULUMI_OPTION_FORCE: "true" },
});

/** Variables that name what Pulumi and the provider work on, and a proxy that Pulumi's libraries would use for this computer too. */
const ofPulumi = (home: string): Record<string, string> => ({
  http_proxy: "http://127.0.0.1:9",
  PULUMI_ACCESS_TOKEN: "pul-0",
  PULUMI_BACKEND_URL: "https://127.0.0.1:9",
  PULUMI_STACK: "theirs",
  PULUMI_CONFIG_PASSPHRASE_FILE: join(home, "missing"),
  PULUMI_HOME: home,
  PULUMI_CONFIG: '{"their:key":"value"}',
  PULUMI_OPTION_JSON: "true",
  PULUMI_OPTION_REFRESH: "true",
  MACHINES_ENDPOINT: "http://127.0.0.1:9",
  MACHINES_TOKEN: "theirs",
  MACHINES_ORGANIZATION: "theirs",
  MACHINES_SERVICE_DATA: home,
  MACHINES_SERVICE_RUNTIME: "docker",
});

/** Writes the files of a home folder. The variables that go with it: those that all programs get, and those of Pulumi. */
export function userSettings(home: string) {
  mkdirSync(join(home, "hooks"), { recursive: true });
  writeFileSync(join(home, ".npmrc"), npmrc);
  writeFileSync(join(home, ".gitconfig"), gitconfig(home));
  writeFileSync(join(home, "ignored"), "*.md\n");
  writeFileSync(join(home, ".curlrc"), "verbose\ninclude\n");
  writeFileSync(join(home, "config.json"), '{"credsStore":"missing"}');
  writeFileSync(join(home, "hooks/post-checkout"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  return { ofShell: ofShell(home), ofPulumi: ofPulumi(home) };
}
