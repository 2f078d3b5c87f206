// The floor of the plugin binding: a provider that answers at once, with the inputs and outputs a real resource has.
// Messages are created once or passed on unchanged: no provider in Node.js can do less.
const fs = require("node:fs");
const grpc = require("@grpc/grpc-js");
const { Empty } = require("google-protobuf/google/protobuf/empty_pb.js");
const { Struct } = require("google-protobuf/google/protobuf/struct_pb.js");
const { ResourceProviderService } = require("@pulumi/pulumi/proto/provider_grpc_pb.js");
const pb = require("@pulumi/pulumi/proto/provider_pb.js");
const { PluginInfo } = require("@pulumi/pulumi/proto/plugin_pb.js");

const text = process.env.BENCH_STATE === undefined ? "{}" : fs.readFileSync(process.env.BENCH_STATE, "utf8");
const types = Object.fromEntries(
  Object.entries(JSON.parse(text)).map(([type, { id, inputs, outputs }]) => [
    type,
    { idLength: id.length, inputs: Struct.fromJavaScript(inputs), outputs: Struct.fromJavaScript(outputs) },
  ]),
);
const typeOf = (urn) => types[urn.split("::")[2].split(":").at(-1)];
let made = 0;

const handshake = () => new pb.ProviderHandshakeResponse().setAcceptSecrets(true).setAcceptOutputs(true);
const unchanged = new pb.DiffResponse().setChanges(pb.DiffResponse.DiffChanges.DIFF_NONE);

const answers = {
  handshake,
  getPluginInfo: () => new PluginInfo().setVersion("0.0.1"),
  getSchema: () => new pb.GetSchemaResponse().setSchema('{"name":"machines"}'),
  checkConfig: (request) => new pb.CheckResponse().setInputs(request.getNews()),
  diffConfig: () => unchanged,
  configure: () => new pb.ConfigureResponse().setAcceptsecrets(true).setAcceptoutputs(true).setSupportspreview(true),
  check: (request) => new pb.CheckResponse().setInputs(typeOf(request.getUrn()).inputs),
  diff: () => unchanged,
  create(request) {
    const { idLength, outputs } = typeOf(request.getUrn());
    return new pb.CreateResponse().setId(`${made++}`.padStart(idLength, "0")).setProperties(outputs);
  },
  read: (request) =>
    new pb.ReadResponse().setId(request.getId()).setProperties(request.getProperties()).setInputs(request.getInputs()),
  delete: () => new Empty(),
  cancel: () => new Empty(),
};

const server = new grpc.Server({ "grpc.max_receive_message_length": 400 * 1024 * 1024 });
const methods = Object.entries(answers).map(([name, answer]) => [
  name,
  (call, callback) => callback(undefined, answer(call.request)),
]);
server.addService(ResourceProviderService, Object.fromEntries(methods));
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(port);
});
