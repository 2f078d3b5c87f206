// The attacks on the walls between tenants, and between them and the operator's computer, by the ids of their faults. The table in
// docs/security.md is generated from it. Each has a test below test/attacks/ that does it again.
import type { Fault } from "../faults/catalogue.ts";

/** Attacks by the wall that they try. */
export const attacks = {
  databases: {},
  hostnames: {},
  proxy: {},
  console: {},
  containers: {
    F87: {
      wrong: "A program in a Machine starts threads and opens files without end.",
      promised:
        "It has 2,048 processes and threads, and 65,536 files for each. Other Machines and the service do not notice.",
    },
    F88: {
      wrong:
        "A program in a Machine uses the rights of root: raw sockets, devices, setuid programs, another root folder.",
      promised:
        "It has the capabilities that common images need, and no process gets more. `--capabilities` names further ones.",
    },
    F89: {
      wrong:
        "A program in a Machine connects to this computer, at its loopback, its gateways and its own addresses: to the API, the proxy, other services, and Postgres servers of other organizations.",
      promised: "Every connection is refused at once. The Postgres servers of the Machine's organization answer.",
    },
    F90: {
      wrong:
        "A program in a Machine connects to Machines of another network, and to private networks of the operator, also while networks are created.",
      promised:
        "Every connection is refused, unless `--reach` names the network. The Machines of its own network answer.",
    },
    F91: {
      wrong: "The name of an image leads the engine to an address of this computer or of a private network.",
      promised:
        "Nothing is asked there, unless `--registries` names it. The refusal is the same, whether a server answers there or not.",
    },
    F92: {
      wrong: "A registry answers with a text that an error would show, such as what it got from an internal server.",
      promised: "The client gets a fixed reason. The log of the service has what the registry answered.",
    },
  },
  time: {},
  authorization: {},
} as const satisfies Record<string, Record<string, Fault>>;
