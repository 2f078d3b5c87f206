// Replaces the index of @opentelemetry/resources in the plugin's bundle, which also has code to describe the computer in
// a span: a file for each operating system.
const {
  defaultResource,
  emptyResource,
  resourceFromAttributes,
} = require("@opentelemetry/resources/build/src/ResourceImpl.js");

module.exports = { defaultResource, emptyResource, resourceFromAttributes };
