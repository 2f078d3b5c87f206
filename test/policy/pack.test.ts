// The pack itself, as the engine asks it: its policies, and their levels without a configuration.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { credentials } from "@grpc/grpc-js";
import services from "@pulumi/pulumi/proto/analyzer_grpc_pb.js";
import type { AnalyzerInfo } from "@pulumi/pulumi/proto/analyzer_pb.js";
import empty from "google-protobuf/google/protobuf/empty_pb.js";
import { expect, test } from "vitest";
import { baselines } from "../../policy/baselines.ts";

const levels = ["advisory", "mandatory", "disabled", "remediate"];

test("the default configuration is development", async () => {
  const pack = spawn(join(__dirname, "../../policy/pulumi-analyzer-machines"), ["127.0.0.1:1", "."], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const port = await new Promise<string>((resolve) =>
      pack.stdout.setEncoding("utf8").once("data", (text: string) => resolve(text.trim())),
    );
    const client = new services.AnalyzerClient(`127.0.0.1:${port}`, credentials.createInsecure());
    const info = (await promisify(client.getAnalyzerInfo.bind(client))(new empty.Empty())) as AnalyzerInfo;
    client.close();
    const initial = info.getInitialconfigMap();
    const found = info.getPoliciesList().map((policy) => {
      const config = initial.get(policy.getName());
      return [policy.getName(), levels[config?.getEnforcementlevel() ?? policy.getEnforcementlevel()]];
    });
    expect(Object.fromEntries(found)).toEqual(baselines.development);
  } finally {
    pack.kill();
  }
});
