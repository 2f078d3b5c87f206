// Programs in Python, Go, Java, C# and YAML, run by the real CLI with the generated SDKs and the plugin of a release. On Linux, they run
// without Node.js: PATH has none.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { makeApp, send } from "../support/around.ts";
import { installReleased } from "../support/released.ts";
import { findRuntime } from "../support/runtimes.ts";
import { counts, Stack } from "../support/stack.ts";
import { isWrite, startService, type TestService } from "../support/startService.ts";
import { allOr } from "../support/extent.mts";
import { thoroughTest } from "../support/thorough.ts";

/** The stack configuration that the programs read: the programs stay unchanged, and Go compiles its program once. */
const settings = { image: "registry.example.com/shop:1.0.0", greeting: "hello", sizeGb: "1", memoryMb: "256" };

const python = `
import pulumi
import pulumi_machines as machines

settings = pulumi.Config()

app = machines.App("shop")
data = machines.Volume("data", app=app.id, region="ams", size_gb=settings.require_int("sizeGb"))
mail = machines.Secret("mail", app=app.id, name="MAIL", value="hush-hush-mail")
payments = machines.Secret("payments", app=app.id, name="PAYMENTS", value="hush-hush-payments")
web = machines.Machine(
    "web",
    app=app.id,
    region="ams",
    min_secrets_version=[mail.version, payments.version],
    config={
        "image": settings.require("image"),
        "guest": {"cpu_kind": "shared", "cpus": 1, "memory_mb": settings.require_int("memoryMb")},
        "env": {"GREETING": settings.require("greeting"), "PASSWORD": pulumi.Output.secret("hush-hush")},
        "mounts": [{"volume": data.id, "path": "/data"}],
    },
)
seen = machines.Volume.get("seen", data.id)

pulumi.export("app", app.name)
pulumi.export("version", web.version)
pulumi.export("seenGb", seen.current_size_gb)
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
		app, err := machines.NewApp(ctx, "shop", nil)
		if err != nil {
			return err
		}
		data, err := machines.NewVolume(ctx, "data", &machines.VolumeArgs{
			App:    app.ID(),
			Region: pulumi.String("ams"),
			SizeGb: pulumi.Int(settings.RequireInt("sizeGb")),
		})
		if err != nil {
			return err
		}
		mail, err := machines.NewSecret(ctx, "mail", &machines.SecretArgs{
			App:   app.ID(),
			Name:  pulumi.String("MAIL"),
			Value: pulumi.String("hush-hush-mail"),
		})
		if err != nil {
			return err
		}
		payments, err := machines.NewSecret(ctx, "payments", &machines.SecretArgs{
			App:   app.ID(),
			Name:  pulumi.String("PAYMENTS"),
			Value: pulumi.String("hush-hush-payments"),
		})
		if err != nil {
			return err
		}
		web, err := machines.NewMachine(ctx, "web", &machines.MachineArgs{
			App:               app.ID(),
			Region:            machines.RegionAms,
			MinSecretsVersion: pulumi.IntArray{mail.Version, payments.Version},
			Config: machines.MachineConfigArgs{
				Image: pulumi.String(settings.Require("image")),
				Guest: machines.MachineGuestArgs{
					CpuKind:  machines.MachineGuestCpuKindShared,
					Cpus:     pulumi.Int(1),
					MemoryMb: pulumi.Int(settings.RequireInt("memoryMb")),
				},
				Env: pulumi.StringMap{
					"GREETING": pulumi.String(settings.Require("greeting")),
					"PASSWORD": pulumi.ToSecret(pulumi.String("hush-hush")).(pulumi.StringOutput),
				},
				Mounts: machines.MachineMountArray{
					machines.MachineMountArgs{Volume: data.ID(), Path: pulumi.String("/data")},
				},
			},
		})
		if err != nil {
			return err
		}
		seen, err := machines.GetVolume(ctx, "seen", data.ID(), nil)
		if err != nil {
			return err
		}
		ctx.Export("app", app.Name)
		ctx.Export("version", web.Version)
		ctx.Export("seenGb", seen.CurrentSizeGb)
		return nil
	})
}
`;

const java = `package hello;

import com.pulumi.Pulumi;
import com.pulumi.core.Either;
import com.pulumi.core.Output;
import io.github.pulumimachines.machines.*;
import io.github.pulumimachines.machines.enums.Region;
import io.github.pulumimachines.machines.inputs.*;
import java.util.List;
import java.util.Map;

public class App {
    public static void main(String[] args) {
        Pulumi.run(ctx -> {
            var settings = ctx.config();
            var app = new io.github.pulumimachines.machines.App("shop");
            var data = new Volume("data", VolumeArgs.builder()
                .app(app.id())
                .region(Region.Ams)
                .sizeGb(settings.requireInteger("sizeGb"))
                .build());
            var mail = new Secret("mail",
                SecretArgs.builder().app(app.id()).name("MAIL").value("hush-hush-mail").build());
            var payments = new Secret("payments",
                SecretArgs.builder().app(app.id()).name("PAYMENTS").value("hush-hush-payments").build());
            var guest = MachineGuestArgs.builder()
                .cpuKind("shared").cpus(1).memoryMb(settings.requireInteger("memoryMb")).build();
            var web = new Machine("web", MachineArgs.builder()
                .app(app.id())
                .region("ams")
                .minSecretsVersion(Output.all(mail.version(), payments.version())
                    .applyValue(versions -> Either.<Integer, List<Integer>>ofRight(versions)))
                .config(MachineConfigArgs.builder()
                    .image(settings.require("image"))
                    .guest(guest)
                    .env(Map.of("GREETING", settings.require("greeting")))
                    .files(MachineFileArgs.builder()
                        .guestPath("/password").rawValue(Output.ofSecret("aHVzaC1odXNo")).build())
                    .mounts(MachineMountArgs.builder().volume(data.id()).path("/data").build())
                    .build())
                .build());
            var workers = new Fleet("workers", FleetArgs.builder()
                .app(app.id())
                .name("workers")
                .regions(Map.of("ams", 2))
                .config(MachineConfigArgs.builder().image("registry.example.com/worker:1.0.0").build())
                .build());
            var seen = Volume.get("seen", data.id(), null);

            ctx.export("app", app.name());
            ctx.export("version", web.version());
            ctx.export("seenGb", seen.currentSizeGb());
            ctx.export("workers", workers.machines().applyValue(List::size));
        });
    }
}
`;

const csharp = `using System.Collections.Generic;
using Pulumi;
using PulumiMachines.Machines;
using PulumiMachines.Machines.Inputs;

return await Deployment.RunAsync(() =>
{
    var settings = new Pulumi.Config();
    var app = new App("shop");
    var data = new Volume("data", new VolumeArgs
    {
        App = app.Id,
        Region = Region.Ams,
        SizeGb = settings.RequireInt32("sizeGb"),
    });
    var mail = new Secret("mail", new SecretArgs { App = app.Id, Name = "MAIL", Value = "hush-hush-mail" });
    var payments = new Secret("payments", new SecretArgs
    {
        App = app.Id,
        Name = "PAYMENTS",
        Value = "hush-hush-payments",
    });
    var web = new Machine("web", new MachineArgs
    {
        App = app.Id,
        Region = "ams",
        MinSecretsVersion = Output.All(mail.Version, payments.Version),
        Config = new MachineConfigArgs
        {
            Image = settings.Require("image"),
            Guest = new MachineGuestArgs
            {
                CpuKind = MachineGuestCpuKind.Shared,
                Cpus = 1,
                MemoryMb = settings.RequireInt32("memoryMb"),
            },
            Env =
            {
                ["GREETING"] = settings.Require("greeting"),
                ["PASSWORD"] = Output.CreateSecret("hush-hush"),
            },
            Mounts = { new MachineMountArgs { Volume = data.Id, Path = "/data" } },
        },
    });
    var seen = Volume.Get("seen", data.Id);

    return new Dictionary<string, object?>
    {
        ["app"] = app.Name,
        ["version"] = web.Version,
        ["seenGb"] = seen.CurrentSizeGb,
    };
});
`;

const yaml = `
config:
  image: { type: string }
  greeting: { type: string }
  sizeGb: { type: integer }
  memoryMb: { type: integer }
resources:
  app:
    type: machines:App
    name: shop
  data:
    type: machines:Volume
    properties: { app: "\${app.id}", region: ams, sizeGb: "\${sizeGb}" }
  mail:
    type: machines:Secret
    properties: { app: "\${app.id}", name: MAIL, value: hush-hush-mail }
  payments:
    type: machines:Secret
    properties: { app: "\${app.id}", name: PAYMENTS, value: hush-hush-payments }
  web:
    type: machines:Machine
    properties:
      app: \${app.id}
      region: ams
      minSecretsVersion: ["\${mail.version}", "\${payments.version}"]
      config:
        image: \${image}
        guest: { cpuKind: shared, cpus: 1, memoryMb: "\${memoryMb}" }
        env:
          GREETING: \${greeting}
          PASSWORD: { "fn::secret": hush-hush }
        mounts:
          - { volume: "\${data.id}", path: /data }
  workers:
    type: machines:Fleet
    properties:
      app: \${app.id}
      name: workers
      regions: { ams: 2 }
      config: { image: "registry.example.com/worker:1.0.0" }
  seen:
    type: machines:Volume
    get: { id: "\${data.id}" }
outputs:
  app: \${app.name}
  version: \${web.version}
  seenGb: \${seen.currentSizeGb}
`;

interface Live {
  readonly id: string;
  readonly version: string;
  readonly config: { readonly image: string; readonly env: Readonly<Record<string, string>> };
}

// The example in Go and the check of its SDK show the same for Go.
describe.each(
  allOr(
    [
      { language: "python", program: python, created: 6, secret: "hush-hush" },
      { language: "go", program: go, created: 6, secret: "hush-hush" },
      // Text or a secret: a map in Java is one or the other, so the secret is in a file, in Base64.
      { language: "java", program: java, created: 7, secret: "aHVzaC1odXNo" },
      { language: "dotnet", program: csharp, created: 6, secret: "hush-hush" },
      { language: "yaml", program: yaml, created: 7, secret: "hush-hush" },
    ],
    [{ language: "python", program: python, created: 6, secret: "hush-hush" }],
  ),
)("a program in $language", async ({ language, program, created, secret }) => {
  const { runtime, reason } = await findRuntime(`runtime: ${language}`, inject("installed"));
  if (runtime === undefined) {
    test.skip(`the language is not run: ${reason}`);
    return;
  }
  let service: TestService;
  let stack: Stack;
  let path = "";

  beforeAll(async () => {
    service = await startService();
    stack = new Stack(inject("installed"), language, "pulumi-machines-plugin", runtime);
    stack.program(program);
    await installReleased(stack, ...(process.platform === "linux" ? ["node"] : []));
    await stack.init({ "machines:endpoint": service.url, "machines:token": service.token, ...settings });
  });
  afterAll(() => service.close());

  const set = (next: Partial<typeof settings>): Promise<string> =>
    stack.ok(
      "config",
      "set-all",
      ...Object.entries(next).flatMap(([key, value]) => ["--plaintext", `${key}=${value}`]),
    );
  const outputs = async () => JSON.parse((await stack.run(["stack", "output", "--json"])).stdout) as unknown;
  const live = () => send<Live>(service, "GET", path);

  test("up creates the declared resources, and keeps the secret", async () => {
    expect(counts(await stack.up())).toEqual({ created });
    const { web, mail, payments } = stack.state();
    const versions = [mail, payments].map((secret) => Number(secret?.outputs["version"]));
    expect(web?.outputs["minSecretsVersion"]).toBe(Math.max(...versions));
    path = `/v1/apps/${web?.id.replace("/", "/machines/")}`;
    const { config, version } = await live();
    expect(config).toMatchObject({ image: settings.image, env: { GREETING: "hello" } });
    expect(JSON.stringify(config)).toContain(secret);
    expect(await outputs()).toMatchObject({ app: expect.stringMatching(/^shop-\w+$/), version, seenGb: 1 });
    const state = JSON.stringify(stack.resources());
    expect(state).toContain("GREETING");
    for (const text of [secret, "hush-hush"]) expect(state).not.toContain(text);
  });

  thoroughTest("a second preview shows no changes", async () => {
    expect(await stack.preview()).toEqual({ seen: expect.objectContaining({ op: "read" }) });
  });

  // In process: the lifecycle suite, for the plugin, which does not know the language.
  thoroughTest("refresh without an outside change shows none", async () => {
    await stack.refresh(); // the volume was read before it was mounted
    expect(counts(await stack.ok("refresh", "--yes", "--skip-preview"))).toEqual({ unchanged: created + 1 });
  });

  thoroughTest("another image, another greeting and a larger volume are updates of only these", async () => {
    const before = await live();
    await set({ image: "registry.example.com/shop:2.0.0", greeting: "hi", sizeGb: "2" });
    const { data, web } = await stack.preview();
    expect([data?.op, data?.changes]).toEqual(["update", ["sizeGb"]]);
    expect([web?.op, web?.changes.toSorted()]).toEqual(["update", ["config.env.GREETING", "config.image"]]);
    expect(counts(await stack.up())).toEqual({ updated: 2, unchanged: created - 2 });
    const after = await live();
    expect(after.id).toBe(before.id);
    expect(after.config).toMatchObject({ image: "registry.example.com/shop:2.0.0", env: { GREETING: "hi" } });
    expect(await outputs(), "a volume that is read by its id").toMatchObject({ version: after.version, seenGb: 2 });
    expect(JSON.stringify(stack.resources())).not.toContain("hush-hush");
  });

  // In process: the lifecycle suite.
  thoroughTest("refresh shows an outside change, and nothing else", async () => {
    const { config } = await live();
    await send(service, "POST", path, { config: { ...config, env: { ...config.env, GREETING: "edited" } } });
    await send(service, "GET", `${path}/wait?state=started`);
    const shown = await stack.ok("refresh", "--yes", "--diff", "--skip-preview");
    expect(shown).toMatch(/GREETING: "hi" +=> "edited"/);
    expect(counts(shown)).toEqual({ updated: 1, unchanged: created });
    expect(shown).not.toContain("hush-hush");
    const { web } = await stack.preview();
    expect([web?.op, web?.changes]).toEqual(["update", ["config.env.GREETING"]]);
  });

  thoroughTest("an invalid input is refused at preview, by the name of the property in this language", async () => {
    const before = service.requests.length;
    await set({ memoryMb: "100" });
    const output = await stack.fails("preview");
    expect(output).toContain("Machine resource 'web' has a problem: ");
    const paths: Readonly<Record<string, string>> = {
      python: "config.guest.memory_mb",
      go: "Config.Guest.MemoryMb",
      dotnet: "Config.Guest.MemoryMb",
    };
    expect(output).toContain(`${paths[language] ?? "config.guest.memoryMb"}: got 100; minimum`);
    if (language === "python") {
      // What Go, Java and C# do not compile, Python hands on: a property of another name.
      stack.program(program.replace('"memory_mb":', '"memroy_mb":'));
      expect(await stack.fails("preview")).toMatch(
        /config\.guest\.memroy_mb: there is no such property; did you mean memory_mb\?/,
      );
    }
    if (language === "yaml") {
      stack.program(program.replace('memoryMb: "', 'memroyMb: "'));
      expect(await stack.fails("preview")).toMatch(/memroyMb/);
    }
    expect(service.requests.slice(before).filter(isWrite)).toEqual([]);
  });

  thoroughTest("an existing object is imported", async () => {
    await makeApp(service, "existing");
    const options = ["--yes", "--protect=false", "--generate-code=false"];
    await stack.ok("import", "machines:index:App", "imported", "existing", ...options);
    expect(stack.state()["imported"]?.id).toBe("existing");
  });

  test("destroy leaves the service empty", async () => {
    await stack.destroy();
    expect(await send(service, "GET", "/v1/apps?org_slug=personal")).toMatchObject({ total_apps: 0 });
    expect(stack.state()).toEqual({});
  });

  // Those of the others are compiled by `npm run check`.
  test.skipIf(language !== "java")("the program in the README of the SDK for Java previews", async () => {
    const readme = readFileSync("sdk/java/README.md", "utf8");
    const [pom, code] = ["xml", "java"].map((fence) => readme.split(`\`\`\`${fence}\n`)[1]?.split("```")[0] ?? "");
    writeFileSync(join(stack.dir, "pom.xml"), pom ?? "");
    stack.program(code ?? "");
    expect(Object.keys(await stack.preview()).toSorted()).toEqual(["data", "hello", "web"]);
  });
});
