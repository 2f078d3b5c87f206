// `pulumi-machines import --terraform`: the states of both community providers, and what is no state.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readTerraform } from "../../cli/organization/terraform.ts";
import { makeApp, makeCluster, makeMachine, makeVolume, send } from "../support/around.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { commandHere } from "./command.ts";
import { inStack, StackFiles } from "./stackFiles.ts";

const managed = (type: string, name: string, attributes: object, more: object = {}) => ({
  ...{ mode: "managed", type, name, provider: `provider["registry.terraform.io/fly-apps/fly"]` },
  instances: [{ schema_version: 0, attributes, sensitive_attributes: [] }],
  ...more,
});
const pulled = (...resources: object[]) =>
  JSON.stringify({ version: 4, terraform_version: "1.9.8", serial: 7, lineage: "l", outputs: {}, resources });

describe("import --terraform", () => {
  let service: TestService;
  let folder: string;
  beforeEach(async () => {
    service = await startService();
    folder = mkdtempSync(join(tmpdir(), "machines-terraform-"));
  });
  afterEach(async () => {
    rmSync(folder, { recursive: true });
    await service.close();
  });
  const write = async (state: string, ...args: string[]) => {
    writeFileSync(join(folder, "state.json"), state);
    const ran = await commandHere(service, [
      "import",
      "--out",
      folder,
      "--terraform",
      join(folder, "state.json"),
      ...args,
    ]);
    expect(service.requests.filter(isWrite).length).toBe(before);
    return ran;
  };
  const imports = () => {
    const { resources } = JSON.parse(readFileSync(join(folder, "import.json"), "utf8")) as {
      resources: { type: string; name: string; id: string }[];
    };
    return resources.map(({ type, name, id }) => `${type.split(":")[2]} ${name} ${id}`).sort();
  };
  let before = 0;

  test("import --terraform imports what the state of the older provider manages, under Terraform's names", async () => {
    await makeApp(service, "shop");
    await makeApp(service, "other");
    const volume = await makeVolume(service, "shop", "ams");
    const config = { image: "registry.example.com/shop:1" };
    const ids = await Promise.all(
      [0, 1, 2].map((i) => makeMachine(service, "shop", { name: `silent-fog-${i}`, config })),
    );
    const { ip } = await send<{ ip: string }>(service, "POST", "/v1/apps/shop/ip_assignments", { type: "v6" });
    await send(service, "POST", "/v1/apps/shop/certificates/acme", { hostname: "shop.example.com" });
    before = service.requests.filter(isWrite).length;
    const instance = (index_key: number) => ({
      index_key,
      schema_version: 0,
      attributes: { app: "shop", id: ids[index_key] },
    });
    const { code, out } = await write(
      pulled(
        managed("fly_app", "main", { id: "shop", name: "shop", org: "personal" }),
        managed("fly_machine", "web", {}, { instances: [instance(0), instance(1)] }),
        managed("fly_volume", "data", { app: "shop", id: volume, internalid: "1" }, { module: "module.storage" }),
        managed("fly_ip", "public", { app: "shop", id: "ip_1", address: ip, type: "v6" }),
        managed("fly_cert", "site", { app: "shop", hostname: "shop.example.com", id: "c1" }),
        managed("fly_machine", "gone", { app: "shop", id: "0123456789abcd" }),
        managed("aws_s3_bucket", "logs", { id: "logs" }),
        { ...managed("fly_app", "read", { name: "other" }), mode: "data" },
      ),
    );
    expect(code, out).toBe(0);
    expect(imports()).toEqual(
      [
        "App main shop",
        `Machine web-0 shop/${ids[0]}`,
        `Machine web-1 shop/${ids[1]}`,
        `Volume storage-data shop/${volume}`,
        `IpAssignment public shop/${ip}`,
        "AcmeCertificate site shop/shop.example.com",
      ].sort(),
    );
    expect(out).toContain("Machine shop/0123456789abcd: the service does not have it.");
    expect(out).toContain(`Machine shop/${ids[2]}: Terraform does not manage it.`);
    expect(readFileSync(join(folder, "index.ts"), "utf8")).toContain('{ name: "silent-fog-0", label: "web-0" }');
    expect(out).not.toMatch(/other|--app/);
  });

  test("import --terraform leaves out what another stack holds, and says only that", async () => {
    for (const name of ["shop", "blog"]) await makeApp(service, name);
    const files = new StackFiles(service, "prod");
    try {
      files.write("Pulumi.yaml", "name: shop\nruntime: nodejs\n");
      files.write("prod.json", inStack("prod", [{ type: "App", name: "shop", id: "shop" }]));
      const apps = ["shop", "blog"].map((name) => managed("fly_app", name, { id: name, name, org: "personal" }));
      files.write("terraform.json", pulled(...apps));
      const { code, out } = await files.run(["import", "--terraform", "terraform.json"]);
      expect(code, out).toBe(0);
      expect(out.match(/App shop: .*/g)).toEqual([
        "App shop: stack prod of this project holds it. Two stacks must not own one object.",
      ]);
    } finally {
      files.remove();
    }
  });

  test("import --terraform imports what the newer provider manages, from terraform show -json", async () => {
    await makeApp(service, "shop");
    await send(service, "POST", "/v1/apps/shop/secrets/DATABASE_URL", { value: "hush" });
    const cluster = await makeCluster(service, "main");
    await send(service, "POST", `/v1/postgres/${cluster}/databases`, { name: "shop" });
    await send(service, "POST", `/v1/postgres/${cluster}/users`, { username: "anna", role: "writer" });
    await send(service, "POST", `/v1/postgres/${cluster}/attachments`, { app_name: "shop" });
    before = service.requests.filter(isWrite).length;
    const one = (type: string, name: string, values: object, index?: string) => ({
      ...{ address: `${type}.${name}`, mode: "managed", type, name, values, schema_version: 0 },
      ...(index === undefined ? {} : { index }),
    });
    const { code, out } = await write(
      JSON.stringify({
        format_version: "1.0",
        terraform_version: "1.9.8",
        values: {
          root_module: {
            resources: [
              one("fly_app", "shop", { name: "shop" }),
              one("fly_secret", "url", { app: "shop", key: "DATABASE_URL" }),
              one("fly_token", "ci", { app: "shop", id: "t1" }),
            ],
            child_modules: [
              {
                address: 'module.db["eu"]',
                resources: [
                  one("fly_mpg_cluster", "main", { id: cluster, name: "main" }),
                  one("fly_mpg_database", "all", { cluster_id: cluster, name: "shop" }, "shop"),
                  one("fly_mpg_user", "anna", { cluster_id: cluster, username: "anna" }),
                  one("fly_mpg_attachment", "shop", { cluster_id: cluster, app: "shop" }),
                ],
              },
            ],
          },
        },
      }),
      "--language",
      "python",
    );
    expect(code, out).toBe(0);
    expect(imports()).toEqual(
      [
        "App shop shop",
        "Secret url shop/DATABASE_URL",
        `PostgresCluster db-eu-main ${cluster}`,
        `PostgresDatabase db-eu-all-shop ${cluster}/database/shop`,
        `PostgresUser db-eu-anna ${cluster}/user/anna`,
        `PostgresAttachment db-eu-shop ${cluster}/shop`,
      ].sort(),
    );
    expect(out).toContain("fly_token.ci: there is no resource for it.");
  });

  test("import --terraform says what is no state, or a state without anything of ours", async () => {
    before = 0;
    const notState = "it is no output of `terraform state pull` or `terraform show -json`";
    for (const text of ["", "nonsense", "[]", '{"version":3}'])
      expect(await write(text)).toMatchObject({ code: 2, err: expect.stringContaining(notState) });
    expect((await write(pulled(managed("aws_s3_bucket", "logs", {})))).err).toContain(
      "no resource whose type begins with fly_",
    );
    const state = pulled(managed("fly_app", "shop", { name: "shop" }));
    expect((await write(state, "--app", "shop")).err).toContain("--terraform and --app cannot be combined");
    expect((await commandHere(service, ["import", "--terraform", join(folder, "none")])).err).toMatch(/none.*ENOENT/);
    expect(readTerraform(pulled(managed("fly_machine", "web", { app: "shop" })), "f").remarks).toEqual([
      "fly_machine.web: the state lacks id.",
    ]);
  });
});
