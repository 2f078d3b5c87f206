// An App with a Machine that serves the web and one that keeps data on a volume, in two regions.
package main

import (
	"github.com/pulumi-machines/pulumi-machines/sdk/go/machines"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		settings := config.New(ctx, "")
		image := settings.Get("image")
		if image == "" {
			image = "registry.example.com/hello:1.0.0"
		}
		volumeSizeGb := settings.GetInt("volumeSizeGb")
		if volumeSizeGb == 0 {
			volumeSizeGb = 1
		}
		retention := 5
		if ctx.Stack() == "prod" {
			retention = 30
		}

		app, err := machines.NewApp(ctx, "hello", nil)
		if err != nil {
			return err
		}

		data, err := machines.NewVolume(ctx, "data", &machines.VolumeArgs{
			App:               app.ID(),
			Region:            pulumi.String("ams"),
			SizeGb:            pulumi.Int(volumeSizeGb),
			SnapshotRetention: pulumi.Int(retention),
		})
		if err != nil {
			return err
		}

		web, err := machines.NewMachine(ctx, "web", &machines.MachineArgs{
			App:    app.ID(),
			Region: pulumi.String("fra"),
			Config: machines.MachineConfigArgs{
				Image: pulumi.String(image),
				Guest: machines.MachineGuestArgs{
					CpuKind:  machines.MachineGuestCpuKindShared,
					Cpus:     pulumi.Int(1),
					MemoryMb: pulumi.Int(256),
				},
				Env:      pulumi.StringMap{"GREETING": pulumi.String("hello")},
				Metadata: pulumi.StringMap{"role": pulumi.String("web")},
				Services: machines.MachineServiceArray{
					machines.MachineServiceArgs{
						Protocol:     machines.MachineServiceProtocolTcp,
						InternalPort: pulumi.Int(8080),
						Autostop:     pulumi.String("stop"),
						Autostart:    pulumi.Bool(true),
						Ports: machines.MachineServicePortArray{
							machines.MachineServicePortArgs{
								Port:     pulumi.Int(80),
								Handlers: machines.MachineServicePortHandlerArray{machines.MachineServicePortHandlerHttp},
							},
							machines.MachineServicePortArgs{
								Port: pulumi.Int(443),
								Handlers: machines.MachineServicePortHandlerArray{
									machines.MachineServicePortHandlerHttp,
									machines.MachineServicePortHandlerTls,
								},
							},
						},
						Checks: machines.MachineServiceCheckArray{
							machines.MachineServiceCheckArgs{
								Type:        machines.MachineServiceCheckTypeHttp,
								Path:        pulumi.String("/healthz"),
								Interval:    pulumi.String("15s"),
								Timeout:     pulumi.String("2s"),
								GracePeriod: pulumi.String("5s"),
							},
						},
					},
				},
			},
		})
		if err != nil {
			return err
		}

		store, err := machines.NewMachine(ctx, "store", &machines.MachineArgs{
			App:    app.ID(),
			Region: pulumi.String("ams"),
			Config: machines.MachineConfigArgs{
				Image:    pulumi.String(image),
				Env:      pulumi.StringMap{"ROLE": pulumi.String("store")},
				Metadata: pulumi.StringMap{"role": pulumi.String("store")},
				Mounts: machines.MachineMountArray{
					machines.MachineMountArgs{Volume: data.ID(), Path: pulumi.String("/data")},
				},
				Checks: machines.MachineCheckMap{
					"alive": machines.MachineCheckArgs{
						Type:     machines.MachineCheckTypeTcp,
						Port:     pulumi.Int(8080),
						Interval: pulumi.String("10s"),
						Timeout:  pulumi.String("2s"),
					},
				},
				StopConfig: machines.MachineStopConfigArgs{
					Signal:  machines.MachineStopSignalSIGTERM,
					Timeout: pulumi.String("30s"),
				},
			},
		})
		if err != nil {
			return err
		}

		ctx.Export("appName", app.Name)
		ctx.Export("webMachine", web.ID())
		ctx.Export("webVersion", web.Version)
		ctx.Export("webAddress", web.PrivateIp)
		ctx.Export("storeMachine", store.ID())
		ctx.Export("volume", data.ID())
		return nil
	})
}
