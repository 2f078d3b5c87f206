// A Release in Python and Go, through the plugin: a Python program releases in `dev`, and `promote` takes it to `staging`; a
// Go program adopts it from there.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { startAdmin, type Admin } from "../../service/index.ts";
import { send } from "../support/around.ts";
import { digest, done, image, listImage, refused } from "../support/promotion.ts";
import { findRuntime, type Runtime } from "../support/runtimes.ts";
import { counts, Stack } from "../support/stack.ts";
import { startService, type TestService } from "../support/startService.ts";

const python = `
import pulumi
import pulumi_machines as machines

settings = pulumi.Config()
before = settings.get("before")

if before is None:
    release = machines.Release(
        "release",
        image=settings.get("image") or "registry.example.com/shop:1.0.0",
        settings={"LOG_FORMAT": "json"},
    )
else:
    stack = f"{pulumi.get_organization()}/{pulumi.get_project()}/{before}"
    pinned = settings.get_object("releases") or [None]
    release = machines.Release(
        "release",
        from_=pulumi.StackReference(stack).get_output("release"),
        pinned=pinned[0],
    )

app = machines.App("shop")
web = machines.Machine(
    "web",
    app=app.id,
    region="ams",
    config={
        "image": release.image,
        "env": release.settings,
        "checks": {"alive": {"type": "tcp", "port": 8080, "interval": "10s", "timeout": "2s"}},
    },
)
worker = machines.Fleet(
    "worker", app=app.id, regions={"ams": 1}, config={"image": release.image, "env": release.settings}
)

pulumi.export("release", release.run_by(machines=[web, worker]))
`;

const go = `package main

import (
	"github.com/pulumi-machines/pulumi-machines/sdk/go/machines"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		settings := config.New(ctx, "")
		before, err := pulumi.NewStackReference(ctx, settings.Require("before"), nil)
		if err != nil {
			return err
		}
		var pinned []map[string]any
		if settings.Get("releases") != "" {
			settings.RequireObject("releases", &pinned)
		}
		args := &machines.ReleaseArgs{From: before.GetOutput(pulumi.String("release"))}
		if len(pinned) > 0 {
			args.Pinned = pulumi.Any(pinned[0])
		}
		release, err := machines.NewRelease(ctx, "release", args)
		if err != nil {
			return err
		}
		app, err := machines.NewApp(ctx, "shop", nil)
		if err != nil {
			return err
		}
		web, err := machines.NewMachine(ctx, "web", &machines.MachineArgs{
			App:    app.ID(),
			Region: machines.RegionAms,
			Config: machines.MachineConfigArgs{Image: release.Image, Env: release.Settings},
		})
		if err != nil {
			return err
		}
		runs, err := release.RunBy(ctx, &machines.ReleaseRunByArgs{Machines: pulumi.Array{web}})
		if err != nil {
			return err
		}
		ctx.Export("release", runs)
		return nil
	})
}
`;

interface Released {
  readonly image: string;
  readonly digest: string;
  readonly settings: Readonly<{ [name: string]: string }>;
  readonly stack: string;
  readonly machines: readonly string[];
  readonly promotedBy?: string;
}

describe("a release in Python and Go", () => {
  let service: TestService;
  let admin: Admin;
  let shop: Stack;
  let fleet: Stack;
  const installed = inject("installed");
  const runtimeOf = async (language: string): Promise<Runtime> => {
    const { runtime, reason } = await findRuntime(`runtime: ${language}`, installed);
    if (runtime === undefined) throw new Error(reason);
    return runtime;
  };
  const on = (stack: Stack, name: string, ...args: string[]) => stack.ok(...args, "--stack", name);
  const up = (stack: Stack, name: string) => on(stack, name, "up", "--yes", "--skip-preview");
  const releaseOf = async (stack: Stack, name: string): Promise<Released> =>
    (JSON.parse(await on(stack, name, "stack", "output", "--json")) as { release: Released }).release;
  const command = (...args: string[]) =>
    shop.run(args, { command: join(installed, "node_modules/.bin/pulumi-machines"), plain: true });
  const machine = async (id: string, action: string, state: string): Promise<void> => {
    const at = `/v1/apps/${id.replace("/", "/machines/")}`;
    await send(service, "POST", `${at}/${action}`);
    await send(service, "GET", `${at}/wait?state=${state}&timeout=10`);
  };

  beforeAll(async () => {
    service = await startService();
    admin = await startAdmin({ service: service.service, listen: { host: "127.0.0.1", port: 0 } });
    await listImage(admin, image("1.0.0"), digest("a"));
    await listImage(admin, image("2.0.0"), digest("c"));
    const configuration = { "machines:endpoint": service.url, "machines:token": service.token };
    shop = new Stack(installed, "python-shop", "pulumi-machines-plugin", await runtimeOf("python"));
    shop.program(python);
    await shop.init(configuration);
    await shop.ok("stack", "init", "staging");
    await shop.set({ ...configuration, before: "dev" });
    fleet = new Stack(installed, "go-shop", "pulumi-machines-plugin", await runtimeOf("go"));
    fleet.env["PULUMI_BACKEND_URL"] = shop.env["PULUMI_BACKEND_URL"] ?? "";
    fleet.program(go);
    await fleet.init({ ...configuration, before: "organization/python-shop/staging" });
  });
  afterAll(async () => {
    await admin.close();
    await service.close();
  });

  test("the programs of the guide are these", () => {
    const guide = readFileSync("docs/promotion.md", "utf8");
    const blocks = [...guide.matchAll(/^```(python|go)\n(.*?)^```$/gms)];
    expect(blocks.map(([, language]) => language)).toEqual(["python", "go"]);
    for (const [, language, text = ""] of blocks) {
      const program = language === "python" ? python : go;
      for (const line of text.split("\n").filter((line) => !/^\s*$/.test(line)))
        expect(program, line).toContain(line.trim());
    }
  });

  test("Python: there is no release to adopt before the first one", async () => {
    expect(await shop.fails("preview", "--stack", "staging")).toMatch(
      /Release.* 'release' has a problem: the release cannot be used: from does not exist yet: .*run `pulumi up` there first/,
    );
  });

  test("Python: a release begins, and its record has the digest that the service reports", async () => {
    const previewed = await on(shop, "dev", "preview");
    expect(previewed).toContain("machines:index:Release");
    await up(shop, "dev");
    const record = await releaseOf(shop, "dev");
    expect(record).toMatchObject({
      image: `${image("1.0.0")}@${digest("a")}`,
      digest: digest("a"),
      settings: { LOG_FORMAT: "json" },
      stack: "python-shop/dev",
    });
    expect(record.machines).toHaveLength(2);
    expect(counts(await up(shop, "dev"))).toEqual({ unchanged: expect.any(Number) as number });
  });

  test("Python: a preview knows the record, until an image changes", async () => {
    // A preview calls back with values that it knows.
    const [exported = ""] = /^pulumi\.export\("release", .*$/m.exec(python) ?? [];
    const tells = "lambda record: pulumi.info(f\"it runs {record['digest']}\")";
    shop.program(
      python.replace(exported, exported.replace(/^.*?, (.*)\)$/, `pulumi.export("release", $1)\n$1.apply(${tells})`)),
    );
    expect(await on(shop, "dev", "preview")).toContain(`it runs ${digest("a")}`);
    await on(shop, "dev", "config", "set", "image", image("2.0.0"));
    expect(await on(shop, "dev", "preview")).not.toContain("it runs ");
    shop.program(python);
    await on(shop, "dev", "config", "rm", "image");
  });

  test("Python: promote takes it to staging, and status shows both", async () => {
    const { machines } = await releaseOf(shop, "dev");
    const [web = ""] = machines;
    await machine(web, "stop", "stopped");
    expect(await shop.fails("preview", "--stack", "staging")).toContain(
      `python-shop/dev does not run its release in a healthy state now: ${web} is stopped, not started`,
    );
    expect(await refused(command("promote", "dev", "staging", "--yes"))).toContain(
      "Not promoted: dev does not run its release in a healthy state.",
    );
    await machine(web, "start", "started");
    await expect.poll(async () => (await command("status", "dev")).code).toBe(0);
    await done(command("promote", "dev", "staging", "--yes", "--by", "alice"));
    expect(await releaseOf(shop, "staging")).toMatchObject({ digest: digest("a"), promotedBy: "alice" });
    expect(await done(command("status"))).toMatch(
      /^dev +shop:1\.0\.0 +a{12} [^]*^staging +shop:1\.0\.0 +a{12} .* by alice +2 healthy$/m,
    );
  });

  test("Go: it is refused while staging does not run it healthy, and then adopted by its digest", async () => {
    await listImage(admin, image("1.0.0"), digest("b"));
    const [web = ""] = (await releaseOf(shop, "staging")).machines;
    await machine(web, "stop", "stopped");
    expect(await fleet.fails("preview")).toContain(
      `python-shop/staging does not run its release in a healthy state now: ${web} is stopped, not started`,
    );
    await machine(web, "start", "started");
    await expect.poll(async () => (await command("status", "staging")).code).toBe(0);
    await fleet.ok("preview");
    await fleet.up();
    expect(await releaseOf(fleet, "dev")).toMatchObject({
      image: `${image("1.0.0")}@${digest("a")}`,
      digest: digest("a"),
      stack: "go-shop/dev",
      settings: { LOG_FORMAT: "json" },
    });
    expect(counts(await fleet.up())).toEqual({ unchanged: expect.any(Number) as number });
  });

  test("Python: a provider of the program constructs it, and it can be protected and depend on others", async () => {
    await shop.ok("stack", "init", "explicit");
    await shop.set({ url: service.url, accessToken: service.token });
    shop.program(`
import pulumi
import pulumi_machines as machines

settings = pulumi.Config()
provider = machines.Provider("mine", endpoint=settings.require("url"), token=settings.require_secret("accessToken"))
own = pulumi.ResourceOptions(provider=provider)
app = machines.App("shop", opts=own)
release = machines.Release(
    "release",
    image="registry.example.com/shop:1.0.0",
    settings={"PASSWORD": pulumi.Output.secret("hush-hush")},
    opts=pulumi.ResourceOptions(provider=provider, protect=True, depends_on=[app]),
)
web = machines.Machine(
    "web", app=app.id, region="ams", config={"image": release.image, "env": release.settings}, opts=own
)
pulumi.export("release", release.run_by(machines=[web]))
`);
    await on(shop, "explicit", "preview");
    await up(shop, "explicit");
    expect(await on(shop, "explicit", "stack", "output", "--json")).toBe('{\n  "release": "[secret]"\n}\n');
    const exported = await on(shop, "explicit", "stack", "export");
    expect(exported).not.toContain("hush-hush");
    const { deployment } = JSON.parse(exported) as { deployment: { resources: { type: string; urn: string }[] } };
    const component = deployment.resources.find(({ type }) => type === "machines:index:Release");
    expect(component).toMatchObject({ protect: true, dependencies: [expect.stringContaining("::shop")] });
    expect(component).not.toHaveProperty("custom", true);
    await on(shop, "explicit", "state", "unprotect", component?.urn ?? "", "--yes");
    await on(shop, "explicit", "destroy", "--yes", "--skip-preview");
    shop.program(python);
  });

  test("its component does not disturb a refresh and a destroy", async () => {
    for (const [stack, name] of [
      [fleet, "dev"],
      [shop, "staging"],
      [shop, "dev"],
    ] as const) {
      await on(stack, name, "refresh", "--yes", "--skip-preview");
      await on(stack, name, "destroy", "--yes", "--skip-preview");
    }
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
  });
});
