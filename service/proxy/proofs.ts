// How a certificate authority sees that this service controls a hostname: by HTTP (RFC 8555), or by TLS (RFC 8737).
import { createServer, type Server, type Socket } from "node:net";
import { createSecureContext, createServer as createTls, type Server as TlsServer } from "node:tls";
import { getExtensionData, readTlsClientHello } from "read-tls-client-hello";
import { challengeFolder, type Challenges } from "../runtime/certificateIssuer.ts";

const protocol = "acme-tls/1";

/** The token of a request that asks for a proof; undefined for all other requests. */
export const tokenIn = (path: string): string | undefined =>
  path.startsWith(challengeFolder) ? path.slice(challengeFolder.length) : undefined;

/**
 * Accepts connections for a server of TLS. Those that ask for a proof get the certificate that proves it, and no other data.
 * Node.js chooses a certificate before it knows the protocol, so the first message of a client is read here.
 */
export function withProofs(server: TlsServer, challenges: Challenges, handshakeMs: number): Server {
  const prover = createTls(
    {
      handshakeTimeout: handshakeMs,
      ALPNProtocols: [protocol],
      SNICallback: (name, done) => {
        const proof = challenges.proofOf(name.toLowerCase());
        if (proof) done(null, createSecureContext(proof));
        else done(new Error("nothing to prove for this name"));
      },
    },
    // The authority has seen the certificate, and nothing else is served here.
    (socket) => socket.destroySoon(),
  );
  prover.on("tlsClientError", (_, socket) => socket.destroy());
  const accept = async (socket: Socket): Promise<void> => {
    const isProof = await asksForProof(socket, handshakeMs);
    if (socket.destroyed) return;
    (isProof ? prover : server).emit("connection", socket);
  };
  return createServer({ noDelay: true }, (socket) => {
    socket.on("error", () => socket.destroy());
    void accept(socket);
  });
}

async function asksForProof(socket: Socket, handshakeMs: number): Promise<boolean> {
  // A client that has not said hello by then is gone.
  const giveUp = setTimeout(() => socket.destroy(), handshakeMs);
  try {
    const hello = await readTlsClientHello(socket);
    return getExtensionData(hello, "alpn")?.protocols.includes(protocol) === true;
  } catch {
    return false; // not TLS: the server answers that
  } finally {
    clearTimeout(giveUp);
  }
}
