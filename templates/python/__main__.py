"""An App with a Machine that keeps its data on a volume."""

import pulumi
import pulumi_machines as machines

settings = pulumi.Config()
region = settings.require("region")

app = machines.App("app")

data = machines.Volume("data", app=app.id, region=region, size_gb=1)

web = machines.Machine(
    "web",
    app=app.id,
    region=region,
    config={
        "image": settings.require("image"),
        "env": {"GREETING": "hello"},
        "mounts": [{"volume": data.id, "path": "/data"}],
        "checks": {"alive": {"type": "tcp", "port": 8080, "interval": "15s", "timeout": "2s"}},
    },
)

pulumi.export("appName", app.name)
pulumi.export("machine", web.id)
pulumi.export("version", web.version)
