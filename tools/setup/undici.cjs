// What the plugin's bundle holds in place of undici's own index, which loads fetch, WebSockets, caches and mocks as well: about
// three quarters of the time and of the memory that loading it takes.
const Dispatcher = require("undici/lib/dispatcher/dispatcher.js");

// As the index does it: requests are made with these, and tunnels through a proxy.
Object.assign(Dispatcher.prototype, require("undici/lib/api/index.js"));

exports.Agent = require("undici/lib/dispatcher/agent.js");
exports.EnvHttpProxyAgent = require("undici/lib/dispatcher/env-http-proxy-agent.js");
