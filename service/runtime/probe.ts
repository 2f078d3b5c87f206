// Makes one check of a Machine.
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import { parseDuration } from "../../api/schema.ts";
import type { NamedCheck } from "./checks.ts";
import type { CheckResult } from "./runtime.ts";
import { addressOf } from "./endpoint.ts";

/** Milliseconds of a duration such as `15s`. */
export const millisecondsOf = (text: string | undefined, otherwise: number): number =>
  text === undefined ? otherwise : (parseDuration(text) ?? otherwise * 1e6) / 1e6;

// ASSUMED: a check that says nothing else has two seconds.
const usualTimeout = 2000;
// ASSUMED: where it cannot be seen whether a program listens, a TCP check passes if the connection stays open for half a second.
const acceptedMs = 500;
// The first request to a Machine waits for it.
const acceptedSoonMs = 33;

/**
 * Whether a program listens where connections are accepted; undefined if that is unknown. An engine accepts them for its containers
 * before it knows, and the mesh of a cluster for its Pods. Both close those that reach no program, but on a busy computer not at once.
 */
export type Listens = () => Promise<boolean | undefined>;

/** Where nothing but the connection itself can be seen. */
export const unseen: Listens = () => Promise.resolve(undefined);

const passing = (output: string): CheckResult => ({ status: "passing", output });
const critical = (output: string): CheckResult => ({ status: "critical", output });

/** The result of a check. */
export const probe = (named: NamedCheck, endpoint: string, listens: Listens): Promise<CheckResult> =>
  named.type === "http" ? probeHttp(named, endpoint) : probeTcp(named, endpoint, listens);

/** Whether a program listens at an endpoint. */
export const accepts = async (endpoint: string, listens = unseen): Promise<boolean> =>
  (await connectTo(endpoint, listens, usualTimeout, acceptedSoonMs)).status === "passing";

const probeTcp = ({ check }: NamedCheck, endpoint: string, listens: Listens): Promise<CheckResult> =>
  connectTo(endpoint, listens, millisecondsOf(check.timeout, usualTimeout));

function connectTo(endpoint: string, listens: Listens, timeout: number, accepted = acceptedMs): Promise<CheckResult> {
  return new Promise((resolve) => {
    const socket = connect(addressOf(endpoint));
    const end = (result: CheckResult): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    let timer = setTimeout(() => end(critical("no connection in time")), timeout);
    const accept = (): void => end(passing("Success"));
    const refuse = (): void => end(critical("connection refused"));
    const decide = async (): Promise<void> => {
      const known = await listens();
      if (known !== undefined) return known ? accept() : refuse();
      clearTimeout(timer);
      timer = setTimeout(accept, Math.min(timeout, accepted));
    };
    socket.on("connect", () => void decide());
    socket.on("data", accept);
    for (const event of ["error", "close"] as const) socket.on(event, refuse);
  });
}

function probeHttp({ check }: NamedCheck, endpoint: string): Promise<CheckResult> {
  const { method = "GET", path = "/", protocol = "http", headers = [], tls_server_name, tls_skip_verify } = check;
  const timeout = millisecondsOf(check.timeout, usualTimeout);
  return new Promise((resolve) => {
    const send = protocol === "https" ? httpsRequest : httpRequest;
    const request = send(
      {
        ...addressOf(endpoint),
        method,
        path,
        headers: Object.fromEntries(headers.map(({ name, values }) => [name, values])),
        agent: false,
        ...(protocol === "https"
          ? { rejectUnauthorized: !tls_skip_verify, ...(tls_server_name ? { servername: tls_server_name } : {}) }
          : {}),
      },
      (response) => {
        response.resume();
        const { statusCode = 0, statusMessage = "" } = response;
        const output = `${statusCode} ${statusMessage}`.trim();
        // ASSUMED: an answer from 200 to 299 passes; a redirect is not followed.
        end(statusCode >= 200 && statusCode < 300 ? passing(output) : critical(output));
      },
    );
    const end = (result: CheckResult): void => {
      clearTimeout(timer);
      request.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => end(critical("no answer in time")), timeout);
    request.on("error", (error: NodeJS.ErrnoException) =>
      end(critical(["ECONNREFUSED", "ECONNRESET"].includes(error.code ?? "") ? "connection refused" : error.message)),
    );
    request.end();
  });
}
