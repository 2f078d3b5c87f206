// An App with a Machine that keeps its data on a volume.
package main

import (
	"github.com/pulumi-machines/pulumi-machines/sdk/go/machines"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		settings := config.New(ctx, "")
		region := pulumi.String(settings.Require("region"))

		app, err := machines.NewApp(ctx, "app", nil)
		if err != nil {
			return err
		}

		data, err := machines.NewVolume(ctx, "data", &machines.VolumeArgs{
			App:    app.ID(),
			Region: region,
			SizeGb: pulumi.Int(1),
		})
		if err != nil {
			return err
		}

		web, err := machines.NewMachine(ctx, "web", &machines.MachineArgs{
			App:    app.ID(),
			Region: region,
			Config: machines.MachineConfigArgs{
				Image: pulumi.String(settings.Require("image")),
				Env:   pulumi.StringMap{"GREETING": pulumi.String("hello")},
				Mounts: machines.MachineMountArray{
					machines.MachineMountArgs{Volume: data.ID(), Path: pulumi.String("/data")},
				},
				Checks: machines.MachineCheckMap{
					"alive": machines.MachineCheckArgs{
						Type:     machines.MachineCheckTypeTcp,
						Port:     pulumi.Int(8080),
						Interval: pulumi.String("15s"),
						Timeout:  pulumi.String("2s"),
					},
				},
			},
		})
		if err != nil {
			return err
		}

		ctx.Export("appName", app.Name)
		ctx.Export("machine", web.ID())
		ctx.Export("version", web.Version)
		return nil
	})
}
