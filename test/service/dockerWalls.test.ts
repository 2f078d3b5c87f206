// What the walls around containers decide without an engine: addresses, registries, and values of options.
import { expect, test } from "vitest";
import { isPublic } from "../../service/runtime/docker/addresses.ts";
import { mayLimitDisk } from "../../service/runtime/docker/confinement.ts";
import { wallProblem } from "../../service/runtime/docker/index.ts";
import { Registries } from "../../service/runtime/docker/registries.ts";
import { command, folder } from "./command.ts";

test("F91: an address is on the internet, or it is private in one of its forms", () => {
  const isPrivate = [
    ...[
      "127.0.0.1",
      "10.1.2.3",
      "172.31.0.1",
      "192.168.0.1",
      "169.254.169.254",
      "100.64.0.1",
      "0.0.0.0",
      "255.255.255.255",
    ],
    ...[
      "::1",
      "::",
      "fd00::1",
      "fe80::1",
      "::ffff:10.0.0.1",
      "::ffff:8.8.8.8",
      "64:ff9b::a00:1",
      "2002:a00:1::",
      "ff02::1",
    ],
    ...["2001:db8::1", "registry", ""],
  ];
  expect(isPrivate.filter(isPublic)).toEqual([]);
  const all = ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111"];
  expect(all.filter(isPublic)).toEqual(all);
});

test("F91: registries that an operator names are asked, and no others", async () => {
  const allowed = async (registries: Registries, ...names: string[]) =>
    Promise.all(names.map(async (name) => (await registries.problem(name)) === undefined));
  const named = new Registries(["GHCR.io", "10.0.0.5:5000"]);
  expect(await allowed(named, "ghcr.io", "10.0.0.5:5000", "10.0.0.5", "docker.io", "8.8.8.8")).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
  expect(await allowed(new Registries(), "docker.io", "8.8.8.8", "localhost:5000", "8.8.8.8.:80")).toEqual([
    ...[true, true],
    ...[false, false],
  ]);
});

test("a wrong value of an option of the walls is named, with what is allowed", async () => {
  expect(
    wallProblem({ registries: ["public", "ghcr.io", "[::1]:5000"], capabilities: ["NET_RAW"], reach: ["10.0.0.0/8"] }),
  ).toBe(undefined);
  expect(wallProblem({ registries: ["https://ghcr.io"] })).toBe(
    '--registries takes public or names such as ghcr.io or 10.0.0.5:5000, got "https://ghcr.io"',
  );
  expect(wallProblem({ capabilities: ["SYS_ADMIN"] })).toMatch(
    /^--capabilities takes any of AUDIT_WRITE, .+, got "SYS_ADMIN"$/,
  );
  for (const reach of ["10.0.0.0/33", "10.0.0/8", "::1", "0.0.0.0/0 -j ACCEPT"])
    expect(wallProblem({ reach: [reach] })).toBe(
      `--reach takes IPv4 networks such as 10.1.2.0/24, got ${JSON.stringify(reach)}`,
    );
  const { code, err } = await command(["start", "--data", folder(), "--reach", "10.0.0.0/8"]);
  expect([code, err]).toEqual([
    1,
    "machines-service: --reach needs --runtime docker: other runtimes have no containers of this service\n",
  ]);
});

test("the disk of containers is limited where an engine may be able to", () => {
  const on = (value: string) => ({ Driver: "overlay2", DriverStatus: [["Backing Filesystem", value]] as const });
  expect([on("xfs"), on("extfs"), { Driver: "btrfs" }, { Driver: "vfs" }, {}].map(mayLimitDisk)).toEqual([
    ...[true, false, true, false, false],
  ]);
});
