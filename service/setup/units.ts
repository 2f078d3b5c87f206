// The units of systemd for the service of a server: the service, and the sockets that stay open while it is restarted.
import { docsUrl } from "../../api/docsUrl.ts";
import { hostInUrl, parseListen } from "../local/listen.ts";
import { settingsFile } from "./settings.ts";

/** Name of the service's unit. */
export const serviceUnit = "machines-service.service";

/** Its user, where it needs no right of root. */
export const serviceUser = "machines-service";

/** What the units depend on. */
export interface Installed {
  /** The program and the arguments that start the service. */
  readonly command: readonly string[];
  /** Folder of the data. */
  readonly data: string;
  /** Address of the API. */
  readonly listen: string;
  readonly runtime: string;
  readonly postgres: string;
  /** Addresses at which other computers reach the proxy. */
  readonly public: readonly string[];
  /** The public ports. */
  readonly ports: { readonly http: string; readonly https: string };
  /** The folder of the backups; undefined if there is none on this computer. */
  readonly backups: string | undefined;
  /** Seconds that a stop waits for requests. */
  readonly drain: number;
}

/**
 * Whether the service runs as root. Only root can change the firewall around containers, and give each server of Postgres a user of its
 * own.
 */
export const needsRoot = ({ runtime, postgres }: Pick<Installed, "runtime" | "postgres">): boolean =>
  runtime === "docker" || postgres === "embedded";

/** What root may do in the service. Everything else that root can do is taken away. */
const capabilities = [
  // The firewall around Machines.
  ...["CAP_NET_ADMIN", "CAP_NET_RAW"],
  // Ports below 1024.
  "CAP_NET_BIND_SERVICE",
  // Users of servers of Postgres, and their files.
  ...["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_SETGID", "CAP_SETUID"],
];

/** A word of a command line in a unit. */
const word = (text: string): string =>
  /^[\w@+=:,./-]+$/.test(text) ? text : `"${text.replace(/["\\]/g, String.raw`\$&`).replace(/[%$]/g, "$&$&")}"`;

const section = (name: string, lines: readonly (string | false)[]): string =>
  `[${name}]\n${lines.filter((line) => line !== false).join("\n")}\n`;

const note = "# Written by `machines-service setup`, which replaces it. For changes of your own: systemctl edit\n";

/** A socket that systemd opens, and hands to the service under a name. */
interface Socket {
  readonly name: "api" | "http" | "https";
  readonly title: string;
  readonly addresses: readonly string[];
}

const at = (host: string, port: string | number): string => `${hostInUrl(host)}:${port}`;

function socketsOf({ listen, public: hosts, ports }: Installed): Socket[] {
  const { host, port } = parseListen(listen);
  // systemd takes no names.
  const local = host === "localhost" ? "127.0.0.1" : host;
  const ofProxy = (["http", "https"] as const).map((name): Socket => ({
    name,
    title: `Machines Control Service, ${name.toUpperCase()} of Apps`,
    addresses: hosts.map((one) => at(one, ports[name])),
  }));
  return [
    { name: "api", title: "Machines Control Service, API", addresses: [at(local, port)] },
    ...(hosts.length > 0 ? ofProxy : []),
  ];
}

/** Name of the unit of a socket. */
const socketUnit = (name: Socket["name"]): string => `machines-service-${name}.socket`;

function textOfSocket({ name, title, addresses }: Socket): string {
  return [
    note,
    section("Unit", [`Description=${title}`]),
    section("Socket", [
      ...addresses.map((address) => `ListenStream=${address}`),
      `FileDescriptorName=${name}`,
      `Service=${serviceUnit}`,
      // Each address is a line of its own.
      "BindIPv6Only=ipv6-only",
      // The address may come up later.
      "FreeBind=yes",
      // Clients wait in it while the service is restarted.
      "Backlog=4096",
      "NoDelay=yes",
    ]),
    section("Install", ["WantedBy=sockets.target"]),
  ].join("\n");
}

function textOfService(installed: Installed, sockets: readonly string[]): string {
  const { command, data, runtime, postgres, backups, drain } = installed;
  const written = [data, backups].filter((folder) => folder !== undefined).map(word);
  const isRoot = needsRoot(installed);
  const isDocker = runtime === "docker";
  return [
    note,
    section("Unit", [
      "Description=Machines Control Service",
      `Documentation=${docsUrl("production.md")}`,
      isDocker && "Wants=docker.service",
      "Wants=network-online.target",
      `After=network-online.target time-sync.target${isDocker ? " docker.service" : ""} ${sockets.join(" ")}`,
      `Requires=${sockets.join(" ")}`,
      `RequiresMountsFor=${written.join(" ")}`,
      // It tries again for ever: what it waits for, such as a disk, may come back.
      "StartLimitIntervalSec=0",
    ]),
    section("Service", [
      "Type=notify",
      // The messages come from a program that the service starts.
      "NotifyAccess=all",
      `EnvironmentFile=${settingsFile}`,
      "Environment=MACHINES_SERVICE_COMMAND=machines-service",
      `Environment=HOME=${isRoot ? "/root" : word(data)}`,
      `ExecStart=${command.map(word).join(" ")}`,
      !isRoot && `User=${serviceUser}`,
      "Restart=on-failure",
      "RestartSec=2",
      // A start reads the whole store, and may wait for the engine.
      "TimeoutStartSec=15min",
      `TimeoutStopSec=${drain + 60}`,
      "WatchdogSec=2min",
      // Servers of Postgres outlive the service, because containers that use them do.
      isDocker && postgres === "embedded" ? "KillMode=process" : "KillMode=mixed",
      "LimitNOFILE=262144",
      "TasksMax=infinity",
      "OOMScoreAdjust=-500",
      "",
      "NoNewPrivileges=yes",
      `CapabilityBoundingSet=${isRoot ? capabilities.join(" ") : ""}`,
      "ProtectSystem=strict",
      // The lock of the firewall is in /run.
      `ReadWritePaths=${written.join(" ")}${isRoot ? " /run" : ""}`,
      // The credentials of registries are in the home folder of root.
      `ProtectHome=${isRoot ? "read-only" : "yes"}`,
      "PrivateTmp=yes",
      "PrivateDevices=yes",
      "ProtectClock=yes",
      "ProtectControlGroups=yes",
      "ProtectKernelLogs=yes",
      "ProtectKernelModules=yes",
      "ProtectKernelTunables=yes",
      !isRoot && "ProtectProc=invisible",
      "LockPersonality=yes",
      "RestrictNamespaces=yes",
      "RestrictRealtime=yes",
      "RestrictSUIDSGID=yes",
      "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
      "SystemCallArchitectures=native",
      "SystemCallFilter=@system-service",
      "SystemCallErrorNumber=EPERM",
    ]),
    section("Install", ["WantedBy=multi-user.target"]),
  ].join("\n");
}

/** The units by their names. */
export function unitsOf(installed: Installed): Map<string, string> {
  const sockets = socketsOf(installed);
  const names = sockets.map(({ name }) => socketUnit(name));
  return new Map([
    ...sockets.map((socket): [string, string] => [socketUnit(socket.name), textOfSocket(socket)]),
    [serviceUnit, textOfService(installed, names)],
  ]);
}

/** All names that a unit of the service can have. */
export const unitNames: readonly string[] = [socketUnit("api"), socketUnit("http"), socketUnit("https"), serviceUnit];
