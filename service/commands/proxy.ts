// The command that runs the proxy as a process of its own.
import { Option, type Command } from "commander";
import type { OwnProxyOptions } from "../local/ownProxy.ts";
import { fromEnvironment } from "./environment.ts";
import { names } from "./names.ts";
import { print, printJson } from "./print.ts";

interface Flags extends OwnProxyOptions {
  readonly json?: true;
}

async function proxy(_: Flags, command: Command): Promise<void> {
  const { json, ...options } = command.opts<Flags>();
  // Loaded only when it is used: it has many modules.
  const { serveProxy } = await import("../local/ownProxy.ts");
  const running = await serveProxy(options);
  if (json) return printJson(running);
  const { http, https, pid } = running;
  print(`the proxy of ${options.service} is ready at ports ${http} and ${https} (pid ${pid})`);
}

/** The options of a proxy. */
export function proxyOptions(): Option[] {
  return [
    new Option("--service <url>", "URL of the service, such as http://machines-service:4280").makeOptionMandatory(),
    new Option("--token-file <file>", "file with a token of the role proxy").makeOptionMandatory(),
    new Option("--public <addresses...>", "addresses to listen at (default: all)").argParser(names),
    new Option("--http <port>", "port for HTTP (default: 80)"),
    new Option("--https <port>", "port for HTTPS (default: 443)"),
    new Option(
      "--tcp <ports...>",
      "raw ports of Apps, such as db:5432, or db:5432=15432 for another port here (default: none)",
    ).argParser(names),
    new Option("--apps-domain <domain>", "domain below which each App answers at its name, such as apps.example.com"),
    new Option("--tls-cert <file>", "certificate for the names below --apps-domain, in PEM"),
    new Option("--tls-key <file>", "private key of this certificate, in PEM"),
    new Option(
      "--trust-proxy <networks...>",
      "networks of proxies in front, whose X-Forwarded-For and X-Forwarded-Proto count (default: none)",
    ).argParser(names),
    new Option("--proxy-protocol", "connections of these networks begin with the PROXY protocol"),
    new Option("--proxy-connections <count>", "most client connections at the same time (default: 10000)"),
    new Option("--proxy-connections-of-address <count>", "most of them from one address (default: half of all)"),
    new Option(
      "--proxy-idle <seconds>",
      "seconds without a byte after which a connection in use is closed (default: 3600)",
    ),
    new Option("--drain <seconds>", "seconds that running requests and open streams get at the end (default: 25)"),
    new Option(
      "--health <address>",
      "address of /healthz and /readyz for probes, such as 0.0.0.0:4284 (default: none)",
    ),
    new Option("--json", "print a JSON object once it is ready"),
  ];
}

/** Adds the command. */
export function addProxy(program: Command): void {
  const command = program
    .command("proxy")
    .description("run the proxy of a service as a process of its own, until it is stopped");
  for (const option of proxyOptions()) command.addOption(fromEnvironment(option));
  command.action(proxy);
}
