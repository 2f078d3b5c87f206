// A parent that opens ports and gives them to one process after the other, as systemd does with socket units. It needs Python, because
// Node.js accepts connections at every port that it opens.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { leaveOut } from "../../tools/lib/leftOut.mjs";

const script = `
import json, os, signal, socket, sys
wanted = json.loads(sys.argv[1])
held = {}
for name, port in wanted.items():
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", port))
    one.listen(4096)
    held[name] = one
def say(what):
    os.write(1, (json.dumps(what) + "\\n").encode())
def ended(*_):
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        say({"ended": pid, "code": os.waitstatus_to_exitcode(status)})
signal.signal(signal.SIGCHLD, ended)
say({"ports": {name: one.getsockname()[1] for name, one in held.items()}})
for line in sys.stdin:
    command = json.loads(line)
    pid = os.fork()
    if pid == 0:
        for at, one in enumerate(held.values()):
            os.dup2(one.fileno(), 100 + at)
        for at in range(len(held)):
            os.dup2(100 + at, 3 + at)
        os.closerange(3 + len(held), 256)
        given = {"LISTEN_FDS": str(len(held)), "LISTEN_PID": str(os.getpid()), "LISTEN_FDNAMES": ":".join(held)}
        os.execve(command[0], command, {**os.environ, **given})
    say({"pid": pid})
`;

/** Whether there is what these tests need. */
export function canHoldSockets(): boolean {
  const isThere = process.platform === "linux" && spawnSync("python3", ["--version"]).status === 0;
  if (!isThere) leaveOut("restarts with socket activation", "they need Linux and Python");
  return isThere;
}

/** A process that has the sockets. */
export interface Holder {
  readonly pid: number;
  /** What it printed first, as JSON. */
  readonly ready: Promise<Readonly<Record<string, unknown>>>;
  /** Its exit code. */
  readonly ended: Promise<number>;
}

interface Waiting {
  pid?: (pid: number) => void;
  ready?: (line: Readonly<Record<string, unknown>>) => void;
}

/** Opens ports by their names, where 0 is a free one, until its end. */
export async function holdSockets<Name extends string>(wanted: Readonly<Record<Name, number>>, env = process.env) {
  const parent = spawn("python3", ["-c", script, JSON.stringify(wanted)], { stdio: ["pipe", "pipe", "pipe"], env });
  const pids = new Set<number>();
  let said = "";
  parent.stderr.on("data", (part: Buffer) => (said += part.toString()));
  const waiting: Waiting = {};
  const ends = new Map<number, (code: number) => void>();
  const lines = createInterface({ input: parent.stdout });
  const [first] = (await once(lines, "line")) as [string];
  lines.on("line", (line) => {
    const found = JSON.parse(line) as Record<string, unknown>;
    if (typeof found["ended"] === "number") ends.get(found["ended"])?.(Number(found["code"]));
    else if (Object.keys(found).length === 1 && typeof found["pid"] === "number") waiting.pid?.(found["pid"]);
    else waiting.ready?.(found);
  });
  return {
    ports: (JSON.parse(first) as { readonly ports: Readonly<Record<Name, number>> }).ports,
    /** What its processes wrote to stderr. */
    said: () => said,
    /** Ends what still runs, and closes the ports. */
    end(): void {
      for (const pid of pids) process.kill(pid, "SIGKILL");
      parent.kill("SIGKILL");
    },
    /** Starts a process with the sockets. */
    async start(program: string, args: readonly string[]): Promise<Holder> {
      const started = new Promise<number>((resolve) => (waiting.pid = resolve));
      const ready = new Promise<Readonly<Record<string, unknown>>>((resolve) => (waiting.ready = resolve));
      parent.stdin.write(`${JSON.stringify([program, ...args])}\n`);
      const pid = await started;
      const ended = new Promise<number>((resolve) => ends.set(pid, resolve));
      pids.add(pid);
      void ended.then(() => pids.delete(pid));
      return { pid, ready: Promise.race([ready, ended.then((code) => ({ code }))]), ended };
    },
  };
}
