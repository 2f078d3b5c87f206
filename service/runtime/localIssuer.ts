// Issues certificates by the authority in the data folder.
import { periods } from "../time/delays.ts";
import type { CertificateIssuer, IssuerHost } from "./certificateIssuer.ts";
import { IssuerRequests } from "./issuerRequests.ts";
import type { LocalAuthority } from "./localAuthority.ts";

/** An issuer with the service's own authority. */
export function localIssuer(authority: LocalAuthority, host: IssuerHost): CertificateIssuer {
  const requests = new IssuerRequests(host, ({ hostname }) =>
    authority.issue([hostname], host.clock.now() + periods.certificate),
  );
  return {
    name: "local",
    request: (wanted) => requests.request(wanted),
    close: () => requests.close(),
  };
}
