// Which ports programs listen at, as the kernel shows it.
import { createServer, type AddressInfo } from "node:net";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { hasListener, listensIn } from "../../service/runtime/docker/sockets.ts";

const header = "  sl  local_address rem_address   st tx_queue rx_queue";
const table = (...rows: string[]): string =>
  [header, ...rows.map((row, i) => `   ${i}: ${row} 00000000:00000000`), ""].join("\n");

test.each([
  ["every address", "00000000:1F90 00000000:0000 0A", true],
  ["one address of a network", "0200170A:1F90 00000000:0000 0A", true],
  ["every address of IPv6", `${"0".repeat(32)}:1F90 ${"0".repeat(32)}:0000 0A`, true],
  ["only itself", "0100007F:1F90 00000000:0000 0A", false],
  ["only itself with IPv6", `${"0".repeat(24)}01000000:1F90 ${"0".repeat(32)}:0000 0A`, false],
  ["only itself with IPv4 in IPv6", `${"0".repeat(16)}FFFF00000100007F:1F90 ${"0".repeat(32)}:0000 0A`, false],
  ["another port", "00000000:1F91 00000000:0000 0A", false],
  ["a connection from this port", "0200170A:1F90 0300170A:1F90 01", false],
])("a socket counts as a listener only at an address that others reach: %s", (_, row, listens) => {
  expect(hasListener(table("00000000:0016 00000000:0000 0A", row), 8080)).toBe(listens);
});

test("a process that is not of the container says nothing", async () => {
  expect(await listensIn({ container: "f".repeat(64), pid: process.pid }, 8080)).toBeUndefined();
  expect(await listensIn({ container: "f".repeat(64), pid: 0 }, 8080)).toBeUndefined();
});

test.runIf(process.platform === "linux")("a port of this process is seen while it listens", async () => {
  const ofThis = { container: readFileSync("/proc/self/cgroup", "utf8").trim(), pid: process.pid };
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  const { port } = server.address() as AddressInfo;
  expect(await listensIn(ofThis, port)).toBe(true);
  await new Promise((resolve) => server.close(resolve));
  expect(await listensIn(ofThis, port)).toBe(false);
});
