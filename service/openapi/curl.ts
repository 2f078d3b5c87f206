// Commands that send requests, for the page with the operations and for the console.
import { parameterExamples, requestExamples, smallestRequests } from "./examples.ts";
import { quoted } from "../ownCommand.ts";
import type { DescribedOperation } from "./types.ts";

const nextLine = " \\\n  ";

const exampleOf = (name: string): string => encodeURIComponent(parameterExamples[name] ?? name);

const authorization = (token: string): string => `-H "Authorization: Bearer ${token}"`;

/**
 * The command that shows an object.
 * @param path of the request, encoded
 * @param tokenCommand prints the access token; without it, the variable `$TOKEN` of the shell has it
 */
export const curlOfObject = (address: string, path: string, tokenCommand: string | undefined): string =>
  [`curl ${quoted(address + path)}`, authorization(tokenCommand === undefined ? "$TOKEN" : `$(${tokenCommand})`)].join(
    nextLine,
  );

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
    ...(security?.length === 0 ? [] : [authorization("$TOKEN")]),
    ...required.filter((parameter) => parameter.in === "header").map(({ name }) => `-H "${name}: $NONCE"`),
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`]),
  ];
  const verb = method === "get" ? "" : `-X ${method.toUpperCase()} `;
  return [`curl ${verb}${quoted(url)}`, ...options].join(nextLine);
}
