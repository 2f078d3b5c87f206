// Passes everything between a client and a Machine.
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

/** Joins two connections: each ends with the other. */
export function join(client: Socket, machine: Duplex): void {
  machine.on("error", () => client.destroy());
  machine.on("close", () => client.destroySoon());
  client.on("error", () => client.destroy());
  client.on("close", () => machine.destroy());
  client.pipe(machine).pipe(client);
}
