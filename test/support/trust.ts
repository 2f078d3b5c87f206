// Authorities that a test trusts.
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterThisTest } from "./leftovers.ts";

/** Lets this process trust a certificate until the test ends, like NODE_EXTRA_CA_CERTS. Other files run in the same process. */
export function trust(certificate: string): void {
  const before = getCACertificates();
  setDefaultCACertificates([...before, certificate]);
  afterThisTest(() => setDefaultCACertificates(before));
}
