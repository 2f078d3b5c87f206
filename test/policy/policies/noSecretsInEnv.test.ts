import { describe, expect, test } from "vitest";
import { noSecretsInEnv } from "../../../policy/policies/noSecretsInEnv.ts";
import { check, unknownList, unknownText } from "../../support/policies.ts";

type Env = Record<string, string>;
const machine = (env: Env, processes: Env[] = [], containers: Env[] = []) => ({
  app: "shop",
  config: {
    image: "shop",
    env,
    processes: processes.map((env) => ({ env })),
    containers: containers.map((env, i) => ({ name: `c${i}`, image: "c", env })),
  },
});
const run = (env: Env, config?: object) => check(noSecretsInEnv, "Machine", machine(env), { config });
const random = "q7Zp2Lw9Xk4Vb8Nc1Md6Rt3Ys5Hg0Jf";

describe("no-secrets-in-env", () => {
  test("the policy accepts plain settings", async () => {
    const env = { PORT: "8080", GREETING: "Hello, world!", PUBLIC_URL: "https://www.example.com/", TOKEN_TTL: "3600" };
    expect(await run(env)).toEqual({ violations: [] });
    expect(await check(noSecretsInEnv, "Machine", machine({}, [env], [env]))).toEqual({ violations: [] });
    expect(await check(noSecretsInEnv, "Machine", { app: "shop", config: { image: "shop" } })).toEqual({
      violations: [],
    });
  });

  test("the policy says why a variable looks like a secret, and never its value", async () => {
    const env = {
      DATABASE_PASSWORD: "hunter2hunter2",
      DATABASE_URL: "postgres://shop:hunter2hunter2@db.example.com/shop",
      SEED: random,
    };
    const said = await check(noSecretsInEnv, "Machine", machine(env), { binding: "pulumi-machines-plugin" });
    const put = "Put it into AppSecrets under the same name.";
    expect(said).toEqual({
      violations: [
        `config.env.DATABASE_PASSWORD looks like a secret, by its name. ${put}`,
        `config.env.DATABASE_URL looks like a secret, by its value, which has the format of a password in an address. ${put}`,
        `config.env.SEED looks like a secret, by its value, which looks random. ${put}`,
      ],
    });
  });

  test("the policy checks processes and containers too", async () => {
    const inputs = machine({}, [{}, { API_KEY: "abc" }], [{ API_KEY: "abc" }]);
    expect(await check(noSecretsInEnv, "Machine", inputs)).toEqual({
      violations: [
        expect.stringMatching(/^config\.processes\[1\]\.env\.API_KEY looks/),
        expect.stringMatching(/^config\.containers\[0\]\.env\.API_KEY looks/),
      ],
    });
  });

  test("the policy accepts exempt variables with any value", async () => {
    const env = { API_KEY: "abc", SEED: random };
    expect(await run(env, { allow: ["API_KEY", "SEED"] })).toEqual({ violations: [] });
    expect(await run(env, { allow: ["API_KEY"] })).toEqual({ violations: [expect.stringContaining("env.SEED")] });
  });

  test("the policy accepts more names", async () => {
    const env = { SESSION_SALT: "abc", MODE: "abc" };
    expect(await run(env)).toEqual({ violations: [] });
    expect(await run(env, { names: ["*_salt"] })).toEqual({
      violations: [expect.stringContaining("config.env.SESSION_SALT looks like a secret, by its name")],
    });
  });

  test("the policy accepts another limit for random text", async () => {
    const env = { SEED: "a1b2a1b2a1b2a1b2a1b2z9" };
    expect(await run(env)).toEqual({ violations: [] });
    expect(await run(env, { entropy: 2 })).toEqual({ violations: [expect.stringContaining("looks random")] });
  });

  test("the policy continues after unknown values", async () => {
    const inputs = machine({ A: unknownText, API_KEY: "abc" }, [], [{ API_KEY: "abc" }]);
    expect(await check(noSecretsInEnv, "Machine", inputs)).toEqual({
      violations: [expect.stringContaining("config.env.API_KEY"), expect.stringContaining("config.containers[0]")],
      unknown: expect.stringMatching(/^config\.env\.A is known only at the update/),
    });
    const lists = machine({ API_KEY: "abc" }, [], [{ API_KEY: "abc" }]);
    expect(
      await check(noSecretsInEnv, "Machine", { ...lists, config: { ...lists.config, processes: unknownList } }),
    ).toEqual({
      violations: [expect.stringContaining("config.env.API_KEY"), expect.stringContaining("config.containers[0]")],
      unknown: expect.stringMatching(/^config\.processes is known only at the update/),
    });
    expect(await run(unknownText as never)).toMatchObject({ unknown: expect.stringMatching(/^config\.env is known/) });
  });

  test("the policy refuses unknown settings", async () => {
    await expect(run({}, { entropi: 3 })).rejects.toThrow('did you mean "entropy"?');
  });
});
