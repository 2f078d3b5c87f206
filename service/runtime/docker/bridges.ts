// The bridges of networks: their names say whose they are, and rules of the firewall match them.
import { createHash, randomBytes } from "node:crypto";

/** Options of the engine's networks. */
export const networkOptions = {
  bridge: "com.docker.network.bridge.name",
  /** Networks of Podman reach each other otherwise; Docker ignores it. */
  isolate: "isolate",
} as const;

/** The engine's name of a network. Owners choose the names of networks, so the hash is long: two with the same hash cannot be searched for. */
export const networkName = (dataId: string, network: string): string =>
  `machines-${dataId.slice(0, 8)}-${createHash("sha256").update(`${dataId}/${network}`).digest("hex").slice(0, 32)}`;

/** The name that earlier versions have given. Two networks can share one, so a network also has to be the one of its label. */
export const formerNetworkName = (dataId: string, network: string): string =>
  `machines-${dataId.slice(0, 8)}-${createHash("sha256").update(network).digest("hex").slice(0, 8)}`;

/** What the names of all bridges of a service begin with. */
export const bridgePrefix = (dataId: string): string => `mc${dataId.slice(0, 5)}`;

/**
 * A name for the bridge of a new network. Systems allow 15 characters, and so short a hash could be searched for. So it is random: the
 * owner of one network cannot take the name of another one's bridge, and the engine refuses a bridge that exists.
 */
export const newBridgeName = (dataId: string): string => `${bridgePrefix(dataId)}${randomBytes(4).toString("hex")}`;
