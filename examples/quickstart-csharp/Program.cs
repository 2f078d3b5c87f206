// An App with a Machine that serves the web and one that keeps data on a volume, in two regions.
using System.Collections.Generic;
using Pulumi;
using PulumiMachines.Machines;
using PulumiMachines.Machines.Inputs;

return await Deployment.RunAsync(() =>
{
    var settings = new Pulumi.Config();
    var image = settings.Get("image") ?? "registry.example.com/hello:1.0.0";
    var production = Deployment.Instance.StackName == "prod";

    var app = new App("hello");

    var data = new Volume("data", new VolumeArgs
    {
        App = app.Id,
        Region = "ams",
        SizeGb = settings.GetInt32("volumeSizeGb") ?? 1,
        SnapshotRetention = production ? 30 : 5,
    });

    var web = new Machine("web", new MachineArgs
    {
        App = app.Id,
        Region = "fra",
        Config = new MachineConfigArgs
        {
            Image = image,
            Guest = new MachineGuestArgs { CpuKind = "shared", Cpus = 1, MemoryMb = 256 },
            Env = { ["GREETING"] = "hello" },
            Metadata = { ["role"] = "web" },
            Services =
            {
                new MachineServiceArgs
                {
                    Protocol = "tcp",
                    InternalPort = 8080,
                    Autostop = "stop",
                    Autostart = true,
                    Ports =
                    {
                        new MachineServicePortArgs { Port = 80, Handlers = { "http" } },
                        new MachineServicePortArgs { Port = 443, Handlers = { "http", "tls" } },
                    },
                    Checks =
                    {
                        new MachineServiceCheckArgs
                        {
                            Type = "http", Path = "/healthz", Interval = "15s", Timeout = "2s", GracePeriod = "5s",
                        },
                    },
                },
            },
        },
    });

    var store = new Machine("store", new MachineArgs
    {
        App = app.Id,
        Region = "ams",
        Config = new MachineConfigArgs
        {
            Image = image,
            Env = { ["ROLE"] = "store" },
            Metadata = { ["role"] = "store" },
            Mounts = { new MachineMountArgs { Volume = data.Id, Path = "/data" } },
            Checks =
            {
                ["alive"] = new MachineCheckArgs { Type = "tcp", Port = 8080, Interval = "10s", Timeout = "2s" },
            },
            StopConfig = new MachineStopConfigArgs { Signal = "SIGTERM", Timeout = "30s" },
        },
    });

    return new Dictionary<string, object?>
    {
        ["appName"] = app.Name,
        ["webMachine"] = web.Id,
        ["webVersion"] = web.Version,
        ["webAddress"] = web.PrivateIp,
        ["storeMachine"] = store.Id,
        ["volume"] = data.Id,
    };
});
