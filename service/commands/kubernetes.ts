// The command that prints what runs the service in a Kubernetes cluster.
import { Option, type Command } from "commander";
import { manifest } from "../local/kubernetesManifest.ts";
import { print } from "./print.ts";

interface Flags {
  readonly image: string;
  readonly namespace: string;
  readonly storage: string;
  readonly storageClass?: string;
  readonly ingressClass?: string;
}

/** Adds the commands for Kubernetes. */
export function addKubernetes(program: Command): void {
  const command = program.command("kubernetes").description("run the service in a Kubernetes cluster");
  command
    .command("manifest")
    .description("print the objects that run the service in a cluster, for kubectl apply -f -")
    .addOption(new Option("--image <image>", "image with the commands machines-service and node").makeOptionMandatory())
    .option("--namespace <name>", "namespace of the service", "machines-service")
    .option("--storage <size>", "size of the volume with the data", "10Gi")
    .option("--storage-class <name>", "class of this volume (default: that of the cluster)")
    .option("--ingress-class <name>", "class of the Ingresses for hostnames (default: that of the cluster)")
    .action((options: Flags) => {
      for (const object of manifest(options)) print(`---\n${JSON.stringify(object, undefined, 2)}`);
    });
}
