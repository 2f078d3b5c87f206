// Commands and processes of containers.
import { once } from "node:events";
import type Dockerode from "dockerode";
import { Collected } from "../collected.ts";
import { notExecuted, outcomeOf } from "../outcome.ts";
import type { Command, Outcome, Process } from "../runtime.ts";

/** What an engine writes to the output of a command that it could not start. */
const failure =
  /^OCI runtime exec failed: (?:exec failed: )?(?:unable to start container process: )?(.+?)(?:: unknown)?\s*$/;

/** Runs a command in a container; undefined if it did not exit in time. */
export async function runCommand(
  container: Dockerode.Container,
  { words, stdin, timeoutMs, signal }: Command,
): Promise<Outcome | undefined> {
  const exec = await container.exec({
    Cmd: [...words],
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
  });
  const stream = await exec.start({ hijack: true, stdin: true });
  const [stdout, stderr] = [new Collected(), new Collected()];
  container.modem.demuxStream(stream, stdout, stderr);
  stream.end(stdin);
  // ASSUMED: a command that does not end in time continues to run: engines have no request to end it.
  const timer = setTimeout(() => stream.destroy(), timeoutMs);
  const leave = (): void => void stream.destroy();
  signal.addEventListener("abort", leave);
  try {
    await once(stream, "close").catch(() => {});
    const { Running, ExitCode } = await exec.inspect();
    if (Running) return undefined;
    const code = ExitCode ?? 0;
    const [, reason] = (code === 126 || code === 127 ? failure.exec(stdout.text) : null) ?? [];
    return reason === undefined ? outcomeOf(stdout.text, stderr.text, code) : notExecuted(reason);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", leave);
  }
}

/** Processes as an engine sees it. */
interface Listed {
  readonly Titles: readonly string[];
  readonly Processes: readonly (readonly string[])[];
}

/** The processes of a container. */
export async function processesOf(container: Dockerode.Container): Promise<readonly Process[]> {
  const columns = "pid,pcpu,rss,time,args";
  // Podman needs a `ps` in the image for options, and lists columns by itself.
  const options = (await container.top({ ps_args: `-o ${columns}` })) as Partial<Listed>;
  const { Titles, Processes } = options.Processes
    ? (options as Listed)
    : ((await container.top({ ps_args: columns })) as Listed);
  const at = (title: string): number => Titles.findIndex((one) => one.includes(title));
  return Processes.map((fields) => ({
    pid: Number(fields[at("PID")]),
    command: fields[at("COMMAND")] ?? "",
    directory: "",
    cpu: Math.round(Number(fields[at("CPU")])),
    rss: Number(fields[at("RSS")]) * 1024,
    rtime: 0,
    stime: secondsOf(fields[at("TIME")] ?? ""),
    // ASSUMED: an engine does not say where a process listens.
    listen_sockets: [],
  }));
}

/** Seconds of a time as ps prints it, `01:02:03`, or as Podman does, `1h2m3.4s`. */
const secondsOf = (time: string): number =>
  Math.floor(
    time
      .replace(/s$/, "")
      .split(/[:hm]/)
      .reduce((sum, part) => sum * 60 + Number(part), 0),
  );
