package hello;

import com.pulumi.Pulumi;
import io.github.pulumimachines.machines.Machine;
import io.github.pulumimachines.machines.MachineArgs;
import io.github.pulumimachines.machines.Volume;
import io.github.pulumimachines.machines.VolumeArgs;
import io.github.pulumimachines.machines.inputs.MachineCheckArgs;
import io.github.pulumimachines.machines.inputs.MachineConfigArgs;
import io.github.pulumimachines.machines.inputs.MachineGuestArgs;
import io.github.pulumimachines.machines.inputs.MachineMountArgs;
import io.github.pulumimachines.machines.inputs.MachineServiceArgs;
import io.github.pulumimachines.machines.inputs.MachineServiceCheckArgs;
import io.github.pulumimachines.machines.inputs.MachineServicePortArgs;
import io.github.pulumimachines.machines.inputs.MachineStopConfigArgs;
import java.util.Map;

/** An App with a Machine that serves the web and one that keeps data on a volume, in two regions. */
public class App {
    public static void main(String[] args) {
        Pulumi.run(ctx -> {
            var settings = ctx.config();
            var image = settings.get("image").orElse("registry.example.com/hello:1.0.0");
            var production = ctx.stackName().equals("prod");

            var app = new io.github.pulumimachines.machines.App("hello");

            var data = new Volume("data", VolumeArgs.builder()
                .app(app.id())
                .region("ams")
                .sizeGb(settings.getInteger("volumeSizeGb").orElse(1))
                .snapshotRetention(production ? 30 : 5)
                .build());

            var web = new Machine("web", MachineArgs.builder()
                .app(app.id())
                .region("fra")
                .config(MachineConfigArgs.builder()
                    .image(image)
                    .guest(MachineGuestArgs.builder().cpuKind("shared").cpus(1).memoryMb(256).build())
                    .env(Map.of("GREETING", "hello"))
                    .metadata(Map.of("role", "web"))
                    .services(MachineServiceArgs.builder()
                        .protocol("tcp")
                        .internalPort(8080)
                        .autostop("stop")
                        .autostart(true)
                        .ports(
                            MachineServicePortArgs.builder().port(80).handlers("http").build(),
                            MachineServicePortArgs.builder().port(443).handlers("http", "tls").build())
                        .checks(MachineServiceCheckArgs.builder()
                            .type("http").path("/healthz").interval("15s").timeout("2s").gracePeriod("5s")
                            .build())
                        .build())
                    .build())
                .build());

            var store = new Machine("store", MachineArgs.builder()
                .app(app.id())
                .region("ams")
                .config(MachineConfigArgs.builder()
                    .image(image)
                    .env(Map.of("ROLE", "store"))
                    .metadata(Map.of("role", "store"))
                    .mounts(MachineMountArgs.builder().volume(data.id()).path("/data").build())
                    .checks(Map.of("alive", MachineCheckArgs.builder()
                        .type("tcp").port(8080).interval("10s").timeout("2s")
                        .build()))
                    .stopConfig(MachineStopConfigArgs.builder().signal("SIGTERM").timeout("30s").build())
                    .build())
                .build());

            ctx.export("appName", app.name());
            ctx.export("webMachine", web.id());
            ctx.export("webVersion", web.version());
            ctx.export("webAddress", web.privateIp());
            ctx.export("storeMachine", store.id());
            ctx.export("volume", data.id());
        });
    }
}
