// The pack itself, as the engine asks it: its policies, and their levels without a configuration.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { credentials, type ServiceError } from "@grpc/grpc-js";
import services from "@pulumi/pulumi/proto/analyzer_grpc_pb.js";
import messages, { type AnalyzerInfo } from "@pulumi/pulumi/proto/analyzer_pb.js";
import empty from "google-protobuf/google/protobuf/empty_pb.js";
import { Struct, type JavaScriptValue } from "google-protobuf/google/protobuf/struct_pb.js";
import { expect, test } from "vitest";
import { baselines } from "../../policy/baselines.ts";

const levels = ["advisory", "mandatory", "disabled", "remediate"];

/** Calls back with a client of a running pack. */
async function withPack<T>(work: (client: services.AnalyzerClient) => Promise<T>): Promise<T> {
  const pack = spawn(join(__dirname, "../../policy/pulumi-analyzer-machines"), ["127.0.0.1:1", "."], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const port = await new Promise<string>((resolve) =>
      pack.stdout.setEncoding("utf8").once("data", (text: string) => resolve(text.trim())),
    );
    const client = new services.AnalyzerClient(`127.0.0.1:${port}`, credentials.createInsecure());
    return await work(client).finally(() => client.close());
  } finally {
    pack.kill();
  }
}

test("the default configuration is development", async () => {
  const info = await withPack(
    async (client) => (await promisify(client.getAnalyzerInfo.bind(client))(new empty.Empty())) as AnalyzerInfo,
  );
  const initial = info.getInitialconfigMap();
  const found = info.getPoliciesList().map((policy) => {
    const config = initial.get(policy.getName());
    return [policy.getName(), levels[config?.getEnforcementlevel() ?? policy.getEnforcementlevel()]];
  });
  expect(Object.fromEntries(found)).toEqual(baselines.development);
});

test("the answer to a misspelt configuration is the reason, so that every command that runs the engine shows it", async () => {
  const answers = await withPack(async (client) => {
    const configure = (policy: string, settings: Record<string, JavaScriptValue>): Promise<unknown> => {
      const config = new messages.PolicyConfig();
      config.setProperties(Struct.fromJavaScript(settings));
      const request = new messages.ConfigureAnalyzerRequest();
      request.getPolicyconfigMap().set(policy, config);
      return promisify(client.configure.bind(client))(request).then(
        () => "accepted",
        (error: unknown) => (error as ServiceError).details,
      );
    };
    return [
      await configure("image-pinned", {}),
      await configure("images-pinned", { exeptions: [] }),
      await configure("images-pinned", { exceptions: [] }),
    ];
  });
  expect(answers).toEqual([
    'the configuration of the pack has "image-pinned", which it does not know; did you mean "images-pinned"?',
    'the configuration of images-pinned has "exeptions", which it does not know; did you mean "exceptions"?',
    "accepted",
  ]);
});
