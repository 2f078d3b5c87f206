// The names in the header `Sec-WebSocket-Protocol` of terminals. Browsers can set no other header of a WebSocket.

/** The protocol of terminals, which a client must offer. */
export const terminalProtocol = "machines-terminal";

/** Name of the operation in the records. */
export const terminalOperation = "machines.terminal";

const keyPrefix = "console-page-key.";

/** The name by which a page of the console sends its key. */
export const pageKeyProtocol = (key: string): string => `${keyPrefix}${key}`;

/** The page key among the names that a client offers; undefined without one. */
export const pageKeyIn = (offered: string | undefined): string | undefined =>
  offered
    ?.split(/, */)
    .find((name) => name.startsWith(keyPrefix))
    ?.slice(keyPrefix.length);
