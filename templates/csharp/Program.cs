// An App with a Machine that keeps its data on a volume.
using System.Collections.Generic;
using Pulumi;
using PulumiMachines.Machines;
using PulumiMachines.Machines.Inputs;

return await Deployment.RunAsync(() =>
{
    var settings = new Pulumi.Config();
    var region = settings.Require("region");

    var app = new App("app");

    var data = new Volume("data", new VolumeArgs { App = app.Id, Region = region, SizeGb = 1 });

    var web = new Machine("web", new MachineArgs
    {
        App = app.Id,
        Region = region,
        Config = new MachineConfigArgs
        {
            Image = settings.Require("image"),
            Env = { ["GREETING"] = "hello" },
            Mounts = { new MachineMountArgs { Volume = data.Id, Path = "/data" } },
            Checks =
            {
                ["alive"] = new MachineCheckArgs { Type = "tcp", Port = 8080, Interval = "15s", Timeout = "2s" },
            },
        },
    });

    return new Dictionary<string, object?>
    {
        ["appName"] = app.Name,
        ["machine"] = web.Id,
        ["version"] = web.Version,
    };
});
