// One App.
import type { JSX } from "preact";
import type { AppView as View } from "../app.ts";
import type { Fresh, Group, Some, States } from "../types.ts";
import { queryOf, to } from "./address.ts";
import { AsCode } from "./code.tsx";
import { may, useLive, who } from "./live.ts";
import { Logs } from "./logs.tsx";
import { MachineTable } from "./machineTable.tsx";
import { Empty, Id, NoView, Section, State, StateCounts, Table, Tabs, Time } from "./parts.tsx";
import { Past } from "./past.tsx";
import { Reveal } from "./reveal.tsx";
import { RolloutTable } from "./rollouts.tsx";
import { TrafficCharts } from "./usage.tsx";
import { count, some } from "./words.ts";

/** The view of an App. */
export function AppPage({ name }: { readonly name: string }): JSX.Element {
  const at = `/console/api/apps/${encodeURIComponent(name)}`;
  const { data, error } = useLive<View>(at, [`app:${name}`]);
  const groups = useLive<{ readonly groups: readonly Group[] } & Fresh>(`${at}/groups`, [`app:${name}`]).data?.groups;
  const view = queryOf("view") || "machines";
  const hasPast = who.value?.hasPast === true;
  if (!data)
    return (
      <>
        <NoView name={name} error={error} />
        {hasPast && error?.status === 404 && <Past app={name} />}
      </>
    );
  const { app } = data;
  // An App may have many addresses; the view of the network lists them.
  const named = data.urls.filter(({ ip }) => ip === undefined);
  const regions = [...new Set(groups?.map(({ region }) => region))].sort();
  return (
    <>
      <nav class="crumbs" aria-label="Where this is">
        <a href={to.overview}>Overview</a>
      </nav>
      <header class="title">
        <h1>{name}</h1>
        {app.status !== undefined && <span class="faint">{app.status}</span>}
        <span class="faint">network {app.network ?? "default"}</span>
        {named.map(({ url }) => (
          <a key={url} href={url} target="_blank" rel="noreferrer">
            {url} ↗
          </a>
        ))}
        <span class="actions">
          <AsCode type="App" id={name} />
          <AsCode type="App" id={name} isWhole />
        </span>
      </header>
      <Tabs
        name="view"
        tabs={[
          ["machines", "Machines"],
          ["rollouts", "Rollouts"],
          ["volumes", `Volumes ${count(data.volumes.total)}`],
          ["network", `Network ${count(data.addresses.total + data.certificates.total)}`],
          ["secrets", `Secrets ${count(data.secrets.total + data.secretKeys.total)}`],
          ["usage", "Usage"],
          ["logs", "Logs"],
          ...(hasPast ? [["past", "Past"] as const] : []),
        ]}
      />
      {view === "machines" && <MachineTable app={name} regions={regions} />}
      {view === "rollouts" && <Rollouts app={name} groups={groups} />}
      {view === "volumes" && <Volumes app={name} view={data} />}
      {view === "network" && <Network app={name} view={data} />}
      {view === "secrets" && <Secrets app={name} view={data} />}
      {view === "usage" && <TrafficCharts app={name} />}
      {view === "logs" && <Logs app={name} />}
      {view === "past" && hasPast && <Past app={name} />}
    </>
  );
}

interface Parts {
  readonly app: string;
  readonly view: View;
}

const fleetLink = (app: string, group: Group): string => {
  const query = new URLSearchParams({
    region: group.region,
    image: group.image,
    ...(group.fleet === null ? {} : { fleet: group.fleet }),
  });
  return `${to.app(app)}?${query}`;
};

const machinesIn = (states: States): number => Object.values(states).reduce((sum, n) => sum + n, 0);

function Rollouts({
  app,
  groups,
}: {
  readonly app: string;
  readonly groups: readonly Group[] | undefined;
}): JSX.Element {
  if (!groups) return <p class="faint">Counting …</p>;
  const fleets = [...new Set(groups.map(({ fleet }) => fleet))];
  return (
    <>
      {fleets.map((fleet) => {
        const own = groups.filter((group) => group.fleet === fleet);
        // Machines that are kept for a rollback, and those of release commands, are in no rollout.
        const rolled = own.filter(({ phase }) => phase !== "kept" && phase !== "release");
        const images = new Set(rolled.map(({ image }) => image));
        return (
          <Section
            key={fleet ?? ""}
            title={fleet === null ? "Machines without a fleet" : `Fleet ${fleet}`}
            aside={<span class="faint">{images.size > 1 ? `${images.size} images` : "one image"}</span>}
          >
            <Table
              label={fleet === null ? "Machines without a fleet" : `Fleet ${fleet}`}
              columns={["Region", "Image", "Phase", "Machines#", "States", "Traffic"]}
            >
              {own.map((group) => (
                <tr key={`${group.region} ${group.image} ${group.phase}`}>
                  <th scope="row">
                    <a href={fleetLink(app, group)}>{group.region}</a>
                  </th>
                  <td class="mono">{group.image}</td>
                  <td>{group.phase ?? ""}</td>
                  <td class="number">{count(machinesIn(group.states))}</td>
                  <td>
                    <StateCounts states={group.states} />
                    {group.critical > 0 && <State of="critical" n={group.critical} />}
                  </td>
                  <td>{group.cordoned > 0 ? <State of="cordoned" n={group.cordoned} /> : "all"}</td>
                </tr>
              ))}
            </Table>
          </Section>
        );
      })}
      {groups.length === 0 && <Empty>This App has no Machines.</Empty>}
      <Section title="Rollouts" aside={<span class="faint">newest first</span>}>
        <RolloutTable app={app} />
      </Section>
    </>
  );
}

const More = ({
  of: { total, first },
  what,
}: {
  readonly of: Some<unknown>;
  readonly what: string;
}): JSX.Element | null =>
  total > first.length ? (
    <p class="faint">
      The first {count(first.length)} of {some(total, what)}.
    </p>
  ) : null;

function Volumes({ app, view: { volumes } }: Parts): JSX.Element {
  if (volumes.total === 0) return <Empty>This App has no volumes. A program declares them as machines.Volume.</Empty>;
  return (
    <>
      <Table
        label="Volumes"
        columns={["Volume", "Id", "State", "Region", "Zone", "Size#", "Attached to", "Snapshots kept", "Created", ""]}
      >
        {volumes.first.map((volume) => (
          <tr key={volume.id}>
            <th scope="row">{volume.name}</th>
            <td>
              <Id>{volume.id}</Id>
            </td>
            <td>
              <State of={volume.state ?? "unknown"} />
            </td>
            <td>{volume.region}</td>
            <td>{volume.zone}</td>
            <td class="number">{volume.size_gb} GB</td>
            <td>
              {volume.attached_machine_id ? (
                <a href={to.machine(app, volume.attached_machine_id)}>{volume.attached_machine_id}</a>
              ) : (
                <span class="faint">nothing</span>
              )}
            </td>
            <td>{some(volume.snapshot_retention ?? 0, "day")}</td>
            <td>
              <Time at={volume.created_at} />
            </td>
            <td>
              <AsCode type="Volume" id={`${app}/${volume.id}`} />
            </td>
          </tr>
        ))}
      </Table>
      <More of={volumes} what="volume" />
    </>
  );
}

function Network({ app, view: { urls, addresses, certificates } }: Parts): JSX.Element {
  return (
    <>
      <Section title="Services">
        {urls.length === 0 ? (
          <Empty>
            No service can be opened here. With the simulated runtime, no program runs: start the service with --runtime
            docker.
          </Empty>
        ) : (
          <Table label="Services" columns={["Port#", "Address"]}>
            {urls.map(({ port, url }) => (
              <tr key={url}>
                <td class="number">{port}</td>
                <td>
                  <a href={url} target="_blank" rel="noreferrer">
                    {url}
                  </a>
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Section>
      <Section title="IP addresses">
        {addresses.total === 0 ? (
          <Empty>This App has no addresses. A program declares them as machines.IpAssignment.</Empty>
        ) : (
          <Table label="IP addresses" columns={["Address", "Region", "Service", "Created", ""]}>
            {addresses.first.map((address) => (
              <tr key={address.ip}>
                <th scope="row">
                  <Id>{address.ip ?? ""}</Id>
                </th>
                <td>{address.region}</td>
                <td>{address.service_name}</td>
                <td>
                  <Time at={address.created_at} />
                </td>
                <td>
                  <AsCode type="IpAssignment" id={`${app}/${address.ip ?? ""}`} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Section>
      <Section title="Certificates">
        {certificates.total === 0 ? (
          <Empty>This App has no hostnames. A program declares them as machines.AcmeCertificate.</Empty>
        ) : (
          <Table label="Certificates" columns={["Hostname", "Status", "From ACME", "Own", "DNS", "Created", ""]}>
            {certificates.first.map((one) => (
              <tr key={one.hostname}>
                <th scope="row">{one.hostname}</th>
                <td>{one.status}</td>
                <td>{one.acme_requested ? (one.has_fly_certificate ? "issued" : "requested") : ""}</td>
                <td>{one.has_custom_certificate ? "yes" : ""}</td>
                <td>{one.configured ? "leads here" : "does not lead here"}</td>
                <td>
                  <Time at={one.created_at} />
                </td>
                <td>
                  <AsCode
                    type={one.acme_requested ? "AcmeCertificate" : "CustomCertificate"}
                    id={`${app}/${one.hostname}`}
                  />
                </td>
              </tr>
            ))}
          </Table>
        )}
        <More of={certificates} what="hostname" />
      </Section>
    </>
  );
}

function Secrets({ app, view: { secrets, secretKeys } }: Parts): JSX.Element {
  return (
    <>
      <Section title="Secrets" aside={<span class="faint">their values are in no view</span>}>
        {secrets.total === 0 ? (
          <Empty>This App has no secrets. A program sets them with machines.Secret or machines.AppSecrets.</Empty>
        ) : (
          <Table label="Secrets" columns={["Name", "Digest", "Created", "Changed", ""]}>
            {secrets.first.map((secret) => (
              <tr key={secret.name}>
                <th scope="row">{secret.name}</th>
                <td>{secret.digest !== undefined && <Id>{secret.digest}</Id>}</td>
                <td>
                  <Time at={secret.created_at} />
                </td>
                <td>
                  <Time at={secret.updated_at} />
                </td>
                <td>
                  <Reveal
                    at={`apps/${encodeURIComponent(app)}/secrets/${encodeURIComponent(secret.name)}`}
                    what={`Secret ${secret.name}`}
                    isAllowed={may("own")}
                  />
                  <AsCode type="Secret" id={`${app}/${secret.name}`} />
                </td>
              </tr>
            ))}
          </Table>
        )}
        <More of={secrets} what="secret" />
      </Section>
      <Section title="Secret keys">
        {secretKeys.total === 0 ? (
          <Empty>This App has no keys. A program declares them as machines.SecretKey.</Empty>
        ) : (
          <Table label="Secret keys" columns={["Name", "Type", "Created", ""]}>
            {secretKeys.first.map((key) => (
              <tr key={key.name}>
                <th scope="row">{key.name}</th>
                <td>{key.type}</td>
                <td>
                  <Time at={key.created_at} />
                </td>
                <td>
                  <AsCode type="SecretKey" id={`${app}/${key.name}`} />
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Section>
    </>
  );
}
