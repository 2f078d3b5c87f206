// Replaces undici's own index in the plugin's bundle, which also loads fetch, WebSockets, caches and mocks: about three
// quarters of its load time and memory.
const Dispatcher = require("undici/lib/dispatcher/dispatcher.js");

// As in the index: requests and proxy tunnels use these.
Object.assign(Dispatcher.prototype, require("undici/lib/api/index.js"));

exports.Agent = require("undici/lib/dispatcher/agent.js");
exports.EnvHttpProxyAgent = require("undici/lib/dispatcher/env-http-proxy-agent.js");
