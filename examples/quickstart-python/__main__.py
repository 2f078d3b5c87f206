"""An App with a Machine that serves the web and one that keeps data on a volume, in two regions."""

import pulumi
import pulumi_machines as machines

settings = pulumi.Config()
image = settings.get("image") or "registry.example.com/hello:1.0.0"
production = pulumi.get_stack() == "prod"

app = machines.App("hello")

data = machines.Volume(
    "data",
    app=app.id,
    region="ams",
    size_gb=settings.get_int("volumeSizeGb") or 1,
    snapshot_retention=30 if production else 5,
)

web = machines.Machine(
    "web",
    app=app.id,
    region="fra",
    config={
        "image": image,
        "guest": {"cpu_kind": "shared", "cpus": 1, "memory_mb": 256},
        "env": {"GREETING": "hello"},
        "metadata": {"role": "web"},
        "services": [
            {
                "protocol": "tcp",
                "internal_port": 8080,
                "autostop": "stop",
                "autostart": True,
                "ports": [
                    {"port": 80, "handlers": ["http"]},
                    {"port": 443, "handlers": ["http", "tls"]},
                ],
                "checks": [
                    {"type": "http", "path": "/healthz", "interval": "15s", "timeout": "2s", "grace_period": "5s"}
                ],
            }
        ],
    },
)

store = machines.Machine(
    "store",
    app=app.id,
    region="ams",
    config={
        "image": image,
        "env": {"ROLE": "store"},
        "metadata": {"role": "store"},
        "mounts": [{"volume": data.id, "path": "/data"}],
        "checks": {"alive": {"type": "tcp", "port": 8080, "interval": "10s", "timeout": "2s"}},
        "stop_config": {"signal": "SIGTERM", "timeout": "30s"},
    },
)

pulumi.export("appName", app.name)
pulumi.export("webMachine", web.id)
pulumi.export("webVersion", web.version)
pulumi.export("webAddress", web.private_ip)
pulumi.export("storeMachine", store.id)
pulumi.export("volume", data.id)
