// Commands that send the requests of operations, for the page with the operations.
import { parameterExamples, requestExamples, smallestRequests } from "./examples.ts";
import { quoted } from "../ownCommand.ts";
import type { DescribedOperation } from "./types.ts";

const exampleOf = (name: string): string => encodeURIComponent(parameterExamples[name] ?? name);

/** The command for an operation: its address, and a small body if one is required. `$TOKEN` stands for the access token. */
export function curlOf(address: string, path: string, method: string, operation: DescribedOperation): string {
  const { operationId, parameters = [], requestBody, security } = operation;
  const required = parameters.filter((parameter) => parameter.required);
  const query = required
    .filter((parameter) => parameter.in === "query")
    .map(({ name }) => `${name}=${exampleOf(name)}`);
  const named = path.replace(/\{(\w+)\}/g, (_, name: string) => exampleOf(name));
  const url = `${address}${named}${query.length > 0 ? `?${query.join("&")}` : ""}`;
  const body = requestBody?.required ? (smallestRequests[operationId] ?? requestExamples[operationId]) : undefined;
  const options = [
    ...(security?.length === 0 ? [] : ['-H "Authorization: Bearer $TOKEN"']),
    ...required.filter((parameter) => parameter.in === "header").map(({ name }) => `-H "${name}: $NONCE"`),
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`]),
  ];
  const verb = method === "get" ? "" : `-X ${method.toUpperCase()} `;
  return [`curl ${verb}${quoted(url)}`, ...options].join(" \\\n  ");
}
