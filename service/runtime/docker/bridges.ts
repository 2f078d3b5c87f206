// The bridges of networks: their names say whose they are, and rules of the firewall match them.
import { createHash } from "node:crypto";

/** Options of the engine's networks. */
export const networkOptions = {
  bridge: "com.docker.network.bridge.name",
  /** Networks of Podman reach each other otherwise; Docker ignores it. */
  isolate: "isolate",
} as const;

const hashOf = (network: string): string => createHash("sha256").update(network).digest("hex").slice(0, 8);

/** The engine's name of a network. */
export const networkName = (dataId: string, network: string): string =>
  `machines-${dataId.slice(0, 8)}-${hashOf(network)}`;

/** What the names of all bridges of a service begin with. */
export const bridgePrefix = (dataId: string): string => `mc${dataId.slice(0, 5)}`;

/** The name of a network's bridge; systems allow 15 characters. */
export const bridgeName = (dataId: string, network: string): string => `${bridgePrefix(dataId)}${hashOf(network)}`;
