// User mistakes, and what the real CLI then prints: at preview, with the name, and without losing anything.
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { makeApp, makeMachine, send } from "../support/around.ts";
import { allOr } from "../support/extent.mts";
import { nodejs, type Runtime } from "../support/runtimes.ts";
import { bindings, bindingsOr, Stack } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { thoroughTest } from "../support/thorough.ts";

const program = (body: string): string => `import * as machines from "pulumi-machines";\n${body}\n`;
const app = program('new machines.App("shop");');
const image = "registry.example.com/shop:1.0.0";

// In process: test/client/config.test.ts and test/core/connection.test.ts.
describe.each(allOr(bindings, []))("invalid configuration on %s", (binding) => {
  let service: TestService;
  let stack: Stack;
  let html: Server;

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "badconfig", binding);
    stack.program(app);
    await stack.init({});
    html = createServer((_, response) =>
      response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>Welcome</title>"),
    );
    await new Promise<void>((resolve) => html.listen(0, "127.0.0.1", resolve));
  });
  afterAll(async () => {
    html.close();
    await service.close();
  });

  /** Runs with the configuration in the environment, which saves a run of the CLI to set it. */
  const run = async (args: readonly string[], endpoint: string, token = service.token) =>
    stack.run(args, { env: { MACHINES_ENDPOINT: endpoint, MACHINES_TOKEN: token, MACHINES_RETRIES: "1" } });
  const preview = (endpoint: string, token?: string) => run(["preview"], endpoint, token);
  const up = (endpoint: string, token?: string) => run(["up", "--yes", "--skip-preview"], endpoint, token);

  test("a missing endpoint is an error that names both ways to set it", async () => {
    const { code, output } = await stack.run(["preview"]);
    expect(code).not.toBe(0);
    expect(output).toMatch(
      /no endpoint: .*pulumi config set machines:endpoint https.*pulumi config set machines:endpoint local/,
    );
  });

  // test/client/config.test.ts has the rules; the engine prints each message like that for a missing endpoint.
  test("an endpoint without a scheme is refused", async () =>
    expect((await preview("127.0.0.1:4280")).output).toMatch(
      /MACHINES_ENDPOINT: got "127.0.0.1:4280"; must begin with http:\/\/ or https:\/\//,
    ));

  // In process: test/client/config.test.ts.
  test("a missing token is an error, and a token with a line break is never shown", async () => {
    expect((await preview(service.url, "")).output).toMatch(/no access token: .*--secret machines:token/);
    const { output } = await preview(service.url, "first-half\nsecond-half");
    expect(output).toMatch(/MACHINES_TOKEN: the token contains a line break/);
    expect(output).not.toMatch(/first-half|second-half/);
  });

  // In process: test/client/config.test.ts and networkAnswers.test.ts.
  test("the error for an invalid or expired token names its source, and never its value", async () => {
    const { output, code } = await up(service.url, "wrong-token-canary");
    expect(code).not.toBe(0);
    expect(output).toMatch(
      /apps\.get answered 401: .*token.*The token from MACHINES_TOKEN is not known to the service, or has expired/,
    );
    expect(output).not.toContain("wrong-token-canary");
  });

  // test/faults/network*.test.ts have the messages; the engine prints them like that for a wrong token.
  test("an endpoint that does not answer", async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    const { output, code } = await up(`http://127.0.0.1:${port}`);
    expect(code).not.toBe(0);
    expect(output).toMatch(
      new RegExp(`no answer from GET http://127.0.0.1:${port}/v1/apps/.*: .*ECONNREFUSED.*does the service run\\?`),
    );
  });

  test("an endpoint that answers HTML is an error", async () => {
    const { port } = html.address() as AddressInfo;
    const { output, code } = await up(`http://127.0.0.1:${port}`);
    expect(code).not.toBe(0);
    expect(output).toMatch(/apps\.get: .*answered 200 with something that is not JSON.*<!doctype html>/);
  });

  // test/client/config.test.ts has the endpoints for which there is a warning.
  test("a token sent to another computer unencrypted causes one warning per run, and is never shown", async () => {
    const token = "unencrypted-canary";
    // This address is reserved for documentation.
    const env = { MACHINES_ENDPOINT: "http://192.0.2.1:4280", MACHINES_TOKEN: token };
    const away = async (...args: string[]) => {
      const hurried = { ...env, MACHINES_RETRIES: "0", MACHINES_REQUEST_TIMEOUT_SECONDS: "1" };
      const { output } = await stack.run(args, { env: hurried });
      expect(output).not.toContain(token);
      return output.slice(output.indexOf("Diagnostics:"));
    };
    const warning = /the token from MACHINES_TOKEN goes to http:\/\/192\.0\.2\.1:4280 unencrypted/g;
    const two = 'new machines.App("shop");\nnew machines.App("other");';
    stack.program(program(`${two}\nmachines.getRegionsOutput();`));
    try {
      expect((await away("preview")).match(warning)).toHaveLength(1);
      stack.program(program(two));
      const { code, output } = await up(service.url);
      expect([code, output]).toEqual([0, expect.not.stringContaining("unencrypted")]);
      expect((await away("refresh", "--yes", "--skip-preview")).match(warning)).toHaveLength(1);
    } finally {
      stack.program(app);
      await run(["destroy", "--yes", "--skip-preview"], service.url);
    }
  });

  test("a trailing /v1 is accepted, a path is a prefix", async () => {
    expect((await up(`${service.url}/v1/`)).code).toBe(0);
    const { output } = await up(`${service.url}/prefix`, service.token);
    expect(output).not.toMatch(/500/);
    await stack.run(["destroy", "--yes", "--skip-preview"], {
      env: { MACHINES_ENDPOINT: service.url, MACHINES_TOKEN: service.token },
    });
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
  });
});

describe.each(bindingsOr("pulumi-machines-plugin"))("a preview of %s checks with the service", (binding) => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "asked", binding);
    stack.program(app);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    await makeApp(service, "taken");
    await makeMachine(service, "taken", { name: "busy", config: { image } });
  });
  afterAll(() => service.close());

  const refused = async (body: string): Promise<string> => {
    stack.program(program(body));
    const before = service.requests.length;
    const output = await stack.fails("preview");
    expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
    return output;
  };

  const answers = [
    ['new machines.App("a", { name: "taken" });', /name: the name "taken" is taken by an App that exists already/],
    [
      `new machines.Machine("a", { app: "taken", name: "busy", config: { image: "${image}" } });`,
      /name: the name "busy" is taken by Machine [0-9a-f]{14} of App taken/,
    ],
    [
      'new machines.Volume("a", { app: "taken", region: "amx" });',
      /region: there is no region "amx"; did you mean "ams"\?/,
    ],
  ] as const;
  test("an App name that is taken, a Machine name that is taken, a region that does not exist", async () => {
    // All use the same check; test/plugin/preview.test.ts covers each.
    for (const [body, message] of allOr(answers, answers.slice(1, 2))) expect(await refused(body)).toMatch(message);
  });

  // test/core/connection.test.ts shows the same in process.
  thoroughTest("each distinct question is asked once, and a service that does not answer is one warning", async () => {
    stack.program(
      program('for (const name of ["a", "b", "c"]) new machines.Volume(name, { app: "taken", region: "ams" });'),
    );
    const before = service.requests.length;
    expect(Object.keys(await stack.preview())).toHaveLength(3);
    expect(service.requests.slice(before).map(({ path }) => path)).toEqual(["/v1/platform/regions"]);
    service.fail({ operation: "platform.regions", when: "before", status: 503, times: 100 });
    const unanswered = await stack.run(["preview"]);
    expect(unanswered.code).toBe(0);
    const warnings = unanswered.output
      .split("Diagnostics:")[1]
      ?.match(/the service cannot be asked, so this preview checks no names/g);
    expect([warnings?.length, unanswered.output]).toEqual([1, expect.stringContaining("503")]);
    const strict = { MACHINES_PREVIEW_REQUIRES_SERVICE: "true" };
    service.fail({ operation: "platform.regions", when: "before", status: 503, times: 100 });
    const failed = await stack.run(["preview"], { env: strict });
    expect([failed.code === 0, failed.output]).toEqual([
      false,
      expect.stringContaining("the service cannot be asked, and machines:previewRequiresService is true"),
    ]);
    service.service.faults.clear();
  });

  const unusable = [
    ["machines:token", () => "wrong", /platform\.regions answered 401: .* The token from machines:token is/],
    ["machines:organization", () => "persona", /there is no organization "persona"; did you mean "personal"\?/],
    ["machines:endpoint", ({ url }: TestService) => url.replace("http:", "https:"), /its endpoint begins with http:/],
  ] as const;
  // In process: test/core/connection.test.ts.
  test.each(allOr(unusable, []))("a preview fails with a wrong %s", async (key, value, message) => {
    stack.program(program("new machines.App('a'); new machines.App('b');"));
    await stack.set({ [key]: value(service) });
    try {
      expect(await stack.fails("preview")).toMatch(message);
    } finally {
      await stack.set({
        "machines:endpoint": service.url,
        "machines:token": service.token,
        "machines:organization": "personal",
      });
    }
  });

  thoroughTest("get reads an existing object and fails for a missing one", async () => {
    stack.program(program('export const id = machines.App.get("x", "taken").appId;'));
    await stack.up();
    expect(await stack.ok("stack", "output", "id")).toMatch(/^[0-9a-z]{16}\s*$/);
    stack.program(program('machines.App.get("y", "never-was");'));
    expect(await stack.fails("up", "--yes", "--skip-preview")).toMatch(/there is no App "never-was"/);
  });

  const limits = [
    [
      `new machines.Machine("a", { app: "taken", config: { image: "${image}", guest: { cpus: 4, memoryMb: 256 } } });`,
      /config\.guest\.memoryMb: got 256; minimum required 1024 MiB/,
    ],
    [
      'new machines.Machine("a", { app: "taken", config: { image: "hello world" } });',
      /config\.image: got "hello world"; must be an image such as "registry\.example\.com\/web:v3"/,
    ],
    [
      `new machines.Machine("a", { app: "taken", config: { image: "${image}", mounts: [{ volume: "vol_a", path: "/a" }, { volume: "vol_b", path: "/b" }] } });`,
      /config\.mounts: a Machine mounts at most one volume/,
    ],
    ['new machines.App("a", { name: "Not_Allowed" });', /name: got "Not_Allowed"; must be 1 to 62 of a-z, 0-9 and -/],
  ] as const;
  test("out-of-range memory and CPUs, no image, two mounts, names outside their limits", async () => {
    // test/core covers the rules; this test shows that the engine reports them.
    for (const [body, message] of allOr(limits, limits.slice(0, 1))) expect(await refused(body)).toMatch(message);
  });
});

/** JavaScript, which is not type-checked before it runs. */
const javascript: Runtime = {
  ...nodejs,
  main: "index.js",
  prepare: (dir, project) =>
    writeFileSync(join(dir, "package.json"), JSON.stringify({ name: project, private: true, main: "index.js" })),
};

// In process: test/core/check.test.ts.
describe.each(allOr(bindings, []))("arguments in JavaScript on %s", (binding) => {
  let service: TestService;
  let stack: Stack;

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), "javascript", binding, javascript);
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token });
    await makeApp(service, "taken");
  });
  afterAll(() => service.close());

  const script = (body: string): void => stack.program(`const machines = require("${binding}");\n${body}\n`);
  const refused = async (body: string): Promise<string> => {
    script(body);
    return stack.fails("preview");
  };

  const misspelt = [
    [
      'new machines.App("a", { forceDestory: true });',
      /forceDestory: there is no such property; did you mean forceDestroy\?/,
    ],
    // A misspelt required property.
    [
      `new machines.Machine("a", { app: "taken", confg: { image: "${image}" } });`,
      /confg: there is no such property; did you mean config\?/,
    ],
    // A property that is only an output.
    [
      'new machines.Volume("a", { app: "taken", region: "ams", currentSizeGb: 3 });',
      /currentSizeGb: there is no such property; known are app, /,
    ],
    // A value that no input takes.
    [
      `new machines.Machine("a", { app: "taken", state: "strated", config: { image: "${image}" } });`,
      /state: got "strated"; must be one of "started", "stopped", "suspended"; did you mean "started"\?/,
    ],
    ['machines.getApp({ nam: "taken" });', /getApp: nam: there is no such property; did you mean name\?/],
  ] as const;
  test("a misspelt property is refused with a suggestion, and not ignored", async () => {
    for (const [body, message] of misspelt) expect(await refused(body)).toMatch(message);
  });

  // The engine does not tell the plugin which resource an unknown id belongs to. In process: test/core/check.test.ts.
  (binding.endsWith("-plugin") ? test.skip : thoroughTest)(
    "a new volume with two Machines, one of them in another region, is refused",
    async () => {
      script(`
      const { ComponentResource } = require("@pulumi/pulumi");
      const parent = new ComponentResource("my:index:Storage", "storage");
      const data = new machines.Volume("data", { app: "taken", region: "ams" }, { parent });
      const config = { image: "${image}", mounts: [{ volume: data.id, path: "/data" }] };
      const first = new machines.Machine("first", { app: "taken", region: "ams", config });
      new machines.Machine("second", { app: "taken", region: "iad", config }, { dependsOn: first });`);
      const output = await stack.fails("preview");
      expect(output).toContain(
        'config.mounts[0].volume: volume "data" is for one Machine, but "first" and "second" of this program use it; declare a second volume for "second"',
      );
      expect(output).toContain('region: got "iad"; must be "ams", the region of volume "data" of this program');
    },
  );

  // In process: test/secrets/secret.test.ts.
  thoroughTest("an empty secret is a valid value", async () => {
    script('new machines.Secret("a", { app: "taken", name: "EMPTY", value: "" });');
    expect(await stack.preview()).toMatchObject({ a: { op: "create" } });
  });
});
