// The first page of the service: what it is, and where to go from there.
import { version } from "../version.ts";
import { escape, htmlPage } from "./html.ts";

const links = [
  ["docs", "/docs", "Every operation, with a search and examples."],
  ["openapi", "/openapi.json", "The same for programs, as OpenAPI 3.1."],
  ["healthz", "/healthz", "200 while the process serves."],
  ["readyz", "/readyz", "200 while the service accepts requests."],
  ["metrics", "/metrics", "Metrics for Prometheus; needs a token of organization personal."],
] as const;

/** The page as JSON. */
export const rootJson = {
  name: "machines-service",
  version,
  description: "A self-hosted Machines Control Service.",
  links: Object.fromEntries(links.map(([name, path]) => [name, path])),
};

/** The page as HTML, with the commands that print a token and a list: undefined if the reader cannot run them. */
export const rootPage = (commands: { readonly token: string; readonly list: string } | undefined): string =>
  htmlPage(
    rootJson.name,
    `<h1>${escape(rootJson.name)} ${escape(version)}</h1>
<p>This is a self-hosted Machines Control Service: an HTTP interface for Apps, Machines, volumes and more.</p>
<table><tbody>
${links.map(([, path, text]) => `<tr><td><a href="${path}">${path}</a></td><td>${escape(text)}</td></tr>`).join("\n")}
</tbody></table>
<p>Requests need an access token${commands === undefined ? "." : `, which <code>${escape(commands.token)}</code> prints. <code>${escape(commands.list)}</code> lists what is here.`}</p>`,
  );
