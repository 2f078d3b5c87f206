// For each alert rule, metrics for which it fires, and some for which it does not.

/** Values of a series at intervals of a minute, as promtool writes them. */
type Series = Readonly<Record<string, string>>;

interface Case {
  readonly fires: Series;
  readonly labels: Readonly<Record<string, string>>;
  readonly summary: string;
  readonly quiet: readonly Series[];
}

const job = "machines-service";
const at = { job, instance: "a" };
const of = `job="${job}",instance="a"`;
const web = { job, app: "web" };
const main = { job, cluster: "main" };
const ofApp = `${of},app="web"`;
const ofCluster = `${of},cluster="main"`;
const always = (value: number): string => `${value}x150`;
const growing = (by: number): string => `0+${by}x150`;

const disk = (free: number): Series => ({
  [`machines_service_data_disk_free_bytes{${of}}`]: always(free),
  [`machines_service_data_disk_size_bytes{${of}}`]: always(100),
});
const requests = (good: number, bad: number): Series => ({
  [`machines_service_requests_total{${of},operation="machines.get",status="200"}`]: growing(good),
  [`machines_service_requests_total{${of},operation="machines.get",status="503"}`]: growing(bad),
});
const proxied = (good: number, bad: number): Series => ({
  [`machines_service_proxy_requests_total{${ofApp},status="2xx"}`]: growing(good),
  [`machines_service_proxy_requests_total{${ofApp},status="5xx"}`]: growing(bad),
});
const times = (name: string, labels: string, buckets: Readonly<Record<string, number>>): Series =>
  Object.fromEntries(Object.entries(buckets).map(([le, by]) => [`${name}_bucket{${labels},le="${le}"}`, growing(by)]));
const backups = (complete: number, result: string): Series => ({
  [`machines_service_backup_interval_seconds{${of}}`]: always(600),
  [`machines_service_backup_last_complete_timestamp_seconds{${of}}`]: always(complete),
  [`machines_service_backup_last_result{${of},result="${result}"}`]: always(1),
});
const shares = (used: string, most: string, value: number): Series => ({ [used]: always(value), [most]: always(100) });
const ofQuota = `${of},org="team",app="web",resource="machines"`;
const quotaShares = (used: number): Series =>
  shares(`machines_service_quota_used{${ofQuota}}`, `machines_service_quota_limit{${ofQuota}}`, used);
/** Seconds since 1970, where the time of the test begins. */
const certificate = (ends: number, renewed?: number): Series => ({
  [`machines_service_certificate_expiration_timestamp_seconds{${ofApp},hostname="www.example.com"}`]: always(ends),
  ...(renewed === undefined
    ? {}
    : {
        [`machines_service_certificate_renewal_timestamp_seconds{${ofApp},hostname="www.example.com"}`]:
          always(renewed),
      }),
});
const day = 86_400;

/** When the alerts are looked at. */
export const moment = "2h";

export const cases: Readonly<Record<string, Case>> = {
  MachinesServiceDown: {
    fires: { [`up{${of}}`]: "1 0x150" },
    labels: at,
    summary: "machines-service at a does not answer Prometheus.",
    quiet: [{ [`up{${of}}`]: always(1) }, { 'up{job="another",instance="a"}': always(0) }],
  },
  MachinesServiceErrors: {
    fires: requests(90, 10),
    labels: { job },
    summary: "10% of the requests to the service fail with a status of 500 or more.",
    // One failure among very few requests is no reason to page the person on call.
    quiet: [requests(99, 1), requests(0.1, 0.1), {}],
  },
  MachinesServiceSlow: {
    fires: times("machines_service_event_loop_lag_seconds", of, { "0.25": 0, "0.5": 10, "+Inf": 10 }),
    labels: at,
    summary: "The event loop of machines-service at a is 497.5ms late.",
    quiet: [times("machines_service_event_loop_lag_seconds", of, { "0.1": 10, "0.25": 10, "+Inf": 10 })],
  },
  MachinesServiceDiskLow: {
    fires: disk(9),
    labels: at,
    summary: "The disk with the data of machines-service at a has 9% left.",
    quiet: [disk(11)],
  },
  MachinesServiceDiskFull: {
    fires: disk(2),
    labels: at,
    summary: "The disk with the data of machines-service at a has 2% left.",
    quiet: [disk(4)],
  },
  MachinesFailed: {
    fires: { [`machines_service_app_machines{${ofApp},state="failed"}`]: always(2) },
    labels: web,
    summary: "2 Machines of web have failed.",
    quiet: [{ [`machines_service_app_machines{${ofApp},state="started"}`]: always(2) }],
  },
  MachinesRestarting: {
    fires: { [`machines_service_app_restarts_total{${ofApp}}`]: growing(1) },
    labels: web,
    summary: "Machines of web crash again and again: 15 restarts in 15 minutes.",
    quiet: [{ [`machines_service_app_restarts_total{${ofApp}}`]: "0x110 2x40" }],
  },
  MachinesChecksCritical: {
    fires: { [`machines_service_app_checks{${ofApp},status="critical"}`]: always(3) },
    labels: web,
    summary: "3 Machines of web run, but their checks fail.",
    quiet: [{ [`machines_service_app_checks{${ofApp},status="passing"}`]: always(3) }],
  },
  MachinesProxyErrors: {
    fires: proxied(80, 20),
    labels: web,
    summary: "20% of the requests to web fail with a status of 500 or more.",
    quiet: [proxied(99, 1), proxied(0.1, 0.1)],
  },
  MachinesProxySlow: {
    fires: times("machines_service_proxy_request_duration_seconds", ofApp, { "5": 0, "10": 10, "+Inf": 10 }),
    labels: web,
    summary: "One in twenty requests to web takes longer than 9.75s.",
    quiet: [times("machines_service_proxy_request_duration_seconds", ofApp, { "2.5": 10, "5": 10, "+Inf": 10 })],
  },
  MachinesProxyFull: {
    fires: shares(`machines_service_proxy_connections{${of}}`, `machines_service_proxy_max_connections{${of}}`, 95),
    labels: { job },
    summary: "95% of the connections that the proxy accepts are open.",
    quiet: [shares(`machines_service_proxy_connections{${of}}`, `machines_service_proxy_max_connections{${of}}`, 80)],
  },
  MachinesCertificateEnds: {
    // It should have been renewed two hours ago.
    fires: certificate(7 * day, 0),
    labels: { ...web, hostname: "www.example.com" },
    summary: "The certificate of www.example.com (web) ends in 6d 22h 0m 0s.",
    quiet: [certificate(7 * day, 2 * 3600), certificate(20 * day), certificate(3600)],
  },
  MachinesCertificateExpired: {
    fires: certificate(3600),
    labels: { ...web, hostname: "www.example.com" },
    summary: "The certificate of www.example.com (web) has expired.",
    quiet: [certificate(day)],
  },
  MachinesCertificateWaits: {
    fires: { [`machines_service_certificates{${of},state="waiting"}`]: always(3) },
    labels: { job },
    summary: "3 hostnames have waited for the validation of their certificate for an hour.",
    quiet: [
      { [`machines_service_certificates{${of},state="valid"}`]: always(3) },
      { [`machines_service_certificates{${of},state="waiting"}`]: "0x100 1x50" },
    ],
  },
  MachinesClusterDown: {
    fires: { [`machines_service_cluster_up{${ofCluster}}`]: always(0) },
    labels: main,
    summary: "Postgres cluster main does not answer.",
    quiet: [{ [`machines_service_cluster_up{${ofCluster}}`]: always(1) }],
  },
  MachinesClusterFull: {
    fires: shares(
      `machines_service_cluster_storage_bytes{${ofCluster}}`,
      `machines_service_cluster_disk_bytes{${ofCluster}}`,
      95,
    ),
    labels: main,
    summary: "Postgres cluster main uses 95% of its disk.",
    quiet: [
      shares(
        `machines_service_cluster_storage_bytes{${ofCluster}}`,
        `machines_service_cluster_disk_bytes{${ofCluster}}`,
        80,
      ),
    ],
  },
  MachinesClusterConnections: {
    fires: shares(
      `machines_service_cluster_connections{${ofCluster}}`,
      `machines_service_cluster_max_connections{${ofCluster}}`,
      95,
    ),
    labels: main,
    summary: "Postgres cluster main uses 95% of its connections.",
    quiet: [
      shares(
        `machines_service_cluster_connections{${ofCluster}}`,
        `machines_service_cluster_max_connections{${ofCluster}}`,
        80,
      ),
    ],
  },
  MachinesBackupOld: {
    fires: backups(0, "complete"),
    labels: { job },
    summary: "The last complete backup of machines-service is older than twice its interval of 10m 0s.",
    quiet: [backups(6900, "failed"), {}],
  },
  MachinesBackupFailed: {
    fires: backups(6900, "incomplete"),
    labels: { job, result: "incomplete" },
    summary: "The last backup of machines-service is incomplete.",
    quiet: [backups(6900, "complete"), {}],
  },
  MachinesQuotaNearlyUsed: {
    fires: quotaShares(95),
    labels: { job, org: "team", app: "web", resource: "machines" },
    summary: "team/web uses 95% of its quota of machines.",
    // A quota of nothing is used up from the beginning.
    quiet: [quotaShares(80), { ...quotaShares(0), [`machines_service_quota_limit{${ofQuota}}`]: always(0) }],
  },
  MachinesServiceNoLeader: {
    fires: {
      [`machines_service_member_leads{${of}}`]: always(0),
      [`machines_service_member_leads{job="${job}",instance="b"}`]: always(0),
    },
    labels: { job },
    summary: "0 members of machines-service lead, instead of one.",
    // A single process has no such metric.
    quiet: [
      {
        [`machines_service_member_leads{${of}}`]: always(1),
        [`machines_service_member_leads{job="${job}",instance="b"}`]: always(0),
      },
      { [`up{${of}}`]: always(1) },
    ],
  },
  MachinesServiceAlone: {
    fires: {
      [`machines_service_members{${of},role="leader"}`]: always(1),
      [`machines_service_members{${of},role="standby"}`]: always(0),
    },
    labels: { job },
    summary: "Only one member of machines-service runs: no other one can take over.",
    quiet: [
      {
        [`machines_service_members{${of},role="leader"}`]: always(1),
        [`machines_service_members{${of},role="standby"}`]: always(1),
      },
    ],
  },
  MachinesServiceMemberBehind: {
    fires: { [`machines_service_member_behind{${of}}`]: always(2000) },
    labels: at,
    summary: "The member at a is 2000 entries of the log behind.",
    quiet: [{ [`machines_service_member_behind{${of}}`]: always(20) }],
  },
  MachinesServiceCopyReplaced: {
    fires: { [`machines_service_member_copies_replaced_total{${of}}`]: "0x100 1x50" },
    labels: at,
    summary: "The copy of the member at a did not fit the log: a disk is damaged, or the database lost changes.",
    quiet: [{ [`machines_service_member_copies_replaced_total{${of}}`]: always(1) }],
  },
};
