package hello;

import com.pulumi.Pulumi;
import io.github.pulumimachines.machines.Machine;
import io.github.pulumimachines.machines.MachineArgs;
import io.github.pulumimachines.machines.Volume;
import io.github.pulumimachines.machines.VolumeArgs;
import io.github.pulumimachines.machines.inputs.MachineCheckArgs;
import io.github.pulumimachines.machines.inputs.MachineConfigArgs;
import io.github.pulumimachines.machines.inputs.MachineMountArgs;
import java.util.Map;

/** An App with a Machine that keeps its data on a volume. */
public class App {
    public static void main(String[] args) {
        Pulumi.run(ctx -> {
            var settings = ctx.config();
            var region = settings.require("region");

            var app = new io.github.pulumimachines.machines.App("app");

            var data = new Volume("data",
                VolumeArgs.builder().app(app.id()).region(region).sizeGb(1).build());

            var web = new Machine("web", MachineArgs.builder()
                .app(app.id())
                .region(region)
                .config(MachineConfigArgs.builder()
                    .image(settings.require("image"))
                    .env(Map.of("GREETING", "hello"))
                    .mounts(MachineMountArgs.builder().volume(data.id()).path("/data").build())
                    .checks(Map.of("alive", MachineCheckArgs.builder()
                        .type("tcp").port(8080).interval("15s").timeout("2s")
                        .build()))
                    .build())
                .build());

            ctx.export("appName", app.name());
            ctx.export("machine", web.id());
            ctx.export("version", web.version());
        });
    }
}
