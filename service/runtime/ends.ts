import type { Socket } from "node:net";

/** The ends of a connection. After its handshake it is another object with the same ones. */
export const endsOf = ({ remoteAddress, remotePort, localAddress, localPort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
