// service/watch/dashboard.json: the dashboard of Grafana, whose panels are listed here.

/** The unit of a panel's values, as Grafana names it. */
type Unit = "short" | "s" | "bytes" | "percentunit" | "reqps" | "dateTimeFromNow";

interface Panel {
  readonly title: string;
  readonly description?: string;
  readonly kind?: "timeseries" | "stat" | "table";
  readonly unit?: Unit;
  /** Expressions by the template of their legend. */
  readonly queries: Readonly<Record<string, string>>;
  /** Values from which on it is red, or below which. */
  readonly redFrom?: number;
  readonly redBelow?: number;
  /** Of 24 columns. */
  readonly width?: number;
}

const of = '{job=~"$job"}';
const ofApps = 'job=~"$job",app=~"$app"';
const rate = "$__rate_interval";

const quantile = (q: number, by: string, metric: string): string =>
  `histogram_quantile(${q}, sum by (${by}, le) (rate(${metric}[${rate}])))`;

/** Rows of panels. */
const rows: Readonly<Record<string, readonly Panel[]>> = {
  Now: [
    { title: "Members up", kind: "stat", queries: { up: 'sum(up{job=~"$job"})' }, redBelow: 1, width: 3 },
    {
      title: "Machines started",
      kind: "stat",
      queries: { started: 'sum(machines_service_machines{job=~"$job",state="started"})' },
      width: 3,
    },
    {
      ...{ title: "Machines failed", kind: "stat", width: 3, redFrom: 1 },
      queries: { failed: 'sum(machines_service_machines{job=~"$job",state="failed"}) or vector(0)' },
    },
    {
      ...{ title: "Machines with critical checks", kind: "stat", width: 3, redFrom: 1 },
      queries: { critical: 'sum(machines_service_app_checks{job=~"$job",status="critical"}) or vector(0)' },
    },
    {
      ...{ title: "First certificate ends", kind: "stat", unit: "dateTimeFromNow", width: 4 },
      queries: { ends: `1000 * min(machines_service_certificate_expiration_timestamp_seconds${of})` },
    },
    {
      title: "Clusters down",
      kind: "stat",
      width: 4,
      redFrom: 1,
      queries: { down: `count(machines_service_cluster_up${of} == 0) or vector(0)` },
    },
    {
      ...{ title: "Least free disk", kind: "stat", unit: "percentunit", width: 4, redBelow: 0.1 },
      queries: { free: `min(machines_service_data_disk_free_bytes${of} / machines_service_data_disk_size_bytes${of})` },
    },
  ],
  "Apps and Machines": [
    {
      title: "Machines by state",
      queries: { "{{state}}": `sum by (state) (machines_service_app_machines{${ofApps}})` },
    },
    {
      title: "Machines that are not well",
      queries: {
        "{{app}} failed": `sum by (app) (machines_service_app_machines{${ofApps},state="failed"})`,
        "{{app}} critical": `sum by (app) (machines_service_app_checks{${ofApps},status="critical"})`,
      },
    },
    {
      title: "Restarts in 15 minutes",
      queries: { "{{app}}": `topk(10, sum by (app) (increase(machines_service_app_restarts_total{${ofApps}}[15m])))` },
    },
    {
      title: "Machines by App",
      queries: { "{{app}}": `topk(10, sum by (app) (machines_service_app_machines{${ofApps}}))` },
    },
  ],
  Proxy: [
    {
      ...{ title: "Requests", unit: "reqps" },
      queries: {
        "{{app}}": `topk(10, sum by (app) (rate(machines_service_proxy_requests_total{${ofApps}}[${rate}])))`,
      },
    },
    {
      ...{ title: "Requests that failed", unit: "percentunit" },
      queries: {
        "{{app}}": `sum by (app) (rate(machines_service_proxy_requests_total{${ofApps},status="5xx"}[${rate}])) / sum by (app) (rate(machines_service_proxy_requests_total{${ofApps}}[${rate}])) > 0`,
      },
    },
    {
      ...{ title: "Time of 95 % of the requests", unit: "s" },
      queries: {
        "{{app}}": `topk(10, ${quantile(0.95, "app", `machines_service_proxy_request_duration_seconds_bucket{${ofApps}}`)})`,
      },
    },
    {
      title: "Connections of clients",
      queries: {
        open: `sum(machines_service_proxy_connections${of})`,
        accepted: `sum(machines_service_proxy_max_connections${of})`,
      },
    },
  ],
  "Certificates and clusters": [
    {
      ...{ title: "Certificates that end first", kind: "table", unit: "s" },
      queries: {
        "": `sort(bottomk(20, max by (app, hostname) (machines_service_certificate_expiration_timestamp_seconds{${ofApps}}) - time()))`,
      },
    },
    { title: "Certificates by state", queries: { "{{state}}": `sum by (state) (machines_service_certificates${of})` } },
    {
      ...{ title: "Disk of clusters in use", unit: "percentunit" },
      queries: {
        "{{cluster}}": `max by (cluster) (machines_service_cluster_storage_bytes${of} / machines_service_cluster_disk_bytes${of})`,
      },
    },
    {
      title: "Connections of clusters",
      queries: {
        "{{cluster}}": `max by (cluster) (machines_service_cluster_connections${of})`,
        "{{cluster}} accepted": `max by (cluster) (machines_service_cluster_max_connections${of})`,
      },
    },
    {
      title: "Queries that take longer than a second",
      queries: { "{{cluster}}": `max by (cluster) (machines_service_cluster_slow_queries${of})` },
    },
    {
      title: "Clusters by status",
      queries: { "{{status}}": `max by (status) (machines_service_clusters${of})` },
    },
  ],
  "The service": [
    {
      ...{ title: "Requests by status", unit: "reqps" },
      queries: { "{{status}}": `sum by (status) (rate(machines_service_requests_total${of}[${rate}]))` },
    },
    {
      ...{ title: "Time of 99 % of the requests", unit: "s" },
      description: "The slowest operations. A wait for a Machine is held for up to a minute.",
      queries: {
        "{{operation}}": `topk(10, ${quantile(0.99, "operation", `machines_service_request_duration_seconds_bucket${of}`)})`,
      },
    },
    {
      ...{ title: "Event loop lag", unit: "s" },
      description: "Everything runs on the event loop: what keeps it busy keeps all clients waiting.",
      queries: {
        "{{instance}} 50 %": quantile(0.5, "instance", `machines_service_event_loop_lag_seconds_bucket${of}`),
        "{{instance}} 99 %": quantile(0.99, "instance", `machines_service_event_loop_lag_seconds_bucket${of}`),
      },
    },
    {
      title: "Processors in use",
      queries: { "{{instance}}": `sum by (instance) (rate(process_cpu_seconds_total${of}[${rate}]))` },
    },
    {
      title: "Memory",
      unit: "bytes",
      queries: { "{{instance}}": `sum by (instance) (process_resident_memory_bytes${of})` },
    },
    {
      ...{ title: "Disk", unit: "bytes" },
      queries: {
        "{{instance}} free": `sum by (instance) (machines_service_data_disk_free_bytes${of})`,
        "{{instance}} store": `sum by (instance) (machines_service_store_bytes${of})`,
      },
    },
    {
      title: "Held requests",
      queries: { "{{instance}}": `sum by (instance) (machines_service_waits${of})` },
    },
    {
      ...{ title: "Refused and faulted requests", unit: "reqps" },
      queries: {
        "too many": `sum(rate(machines_service_rate_limited_total${of}[${rate}]))`,
        "planned faults": `sum(rate(machines_service_faults_total${of}[${rate}]))`,
      },
    },
  ],
  Backups: [
    {
      ...{ title: "Age of the last complete backup", unit: "s" },
      queries: { age: `time() - max(machines_service_backup_last_complete_timestamp_seconds${of})` },
    },
    {
      ...{ title: "Time of the last backup", unit: "s" },
      queries: { duration: `max(machines_service_backup_last_duration_seconds${of})` },
    },
    {
      ...{ title: "Added by the last backup", unit: "bytes" },
      queries: { added: `max(machines_service_backup_last_added_bytes${of})` },
    },
    {
      title: "Result of the last backup",
      queries: { "{{result}}": `max by (result) (machines_service_backup_last_result${of})` },
    },
  ],
  "Several members": [
    { title: "Who leads", queries: { "{{instance}}": `sum by (instance) (machines_service_member_leads${of})` } },
    { title: "Entries behind", queries: { "{{instance}}": `sum by (instance) (machines_service_member_behind${of})` } },
    {
      title: "Leaderships and members",
      queries: {
        leaderships: `max(machines_service_leaderships_total${of})`,
        "{{role}}": `max by (role) (machines_service_members${of})`,
        "copies replaced": `sum(machines_service_member_copies_replaced_total${of})`,
      },
    },
    {
      ...{ title: "Size of the log", unit: "bytes" },
      queries: { "in the database": `max(machines_service_log_bytes${of})` },
    },
  ],
};

const columns = 24;
const datasource = { type: "prometheus", uid: "${datasource}" };

const thresholdsOf = ({ redFrom, redBelow }: Panel): object => ({
  mode: "absolute",
  steps:
    redBelow !== undefined
      ? [
          { color: "red", value: null },
          { color: "green", value: redBelow },
        ]
      : [{ color: "green", value: null }, ...(redFrom === undefined ? [] : [{ color: "red", value: redFrom }])],
});

function panelOf(panel: Panel, id: number, x: number, y: number): object {
  const { title, description, kind = "timeseries", unit = "short", queries, width = 6 } = panel;
  const targets = Object.entries(queries).map(([legendFormat, expr], i) => ({
    refId: String.fromCharCode(65 + i),
    datasource,
    expr,
    legendFormat,
    ...(kind === "table" ? { format: "table", instant: true } : kind === "stat" ? { instant: true } : { range: true }),
  }));
  return {
    ...{ id, type: kind, title },
    ...(description === undefined ? {} : { description }),
    datasource,
    gridPos: { x, y, w: width, h: kind === "stat" ? 4 : 8 },
    fieldConfig: {
      defaults: { unit, thresholds: thresholdsOf(panel), ...(kind === "timeseries" ? { min: 0 } : {}) },
      overrides: [],
    },
    options:
      kind === "stat"
        ? { colorMode: "value", reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false } }
        : kind === "table"
          ? { showHeader: true }
          : { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi", sort: "desc" } },
    targets,
  };
}

const variable = (name: string, query: string, more: object = {}): object => ({
  ...{ name, type: "query", datasource, query: { query, refId: name }, definition: query },
  ...{ refresh: 2, includeAll: true, multi: true, current: { text: "All", value: "$__all" }, sort: 1 },
  ...more,
});

/** The dashboard as text. */
export function dashboard(): string {
  const panels: object[] = [];
  let id = 0;
  let y = 0;
  for (const [title, ofRow] of Object.entries(rows)) {
    panels.push({
      id: ++id,
      type: "row",
      title,
      collapsed: false,
      gridPos: { x: 0, y: y++, w: columns, h: 1 },
      panels: [],
    });
    let x = 0;
    let height = 0;
    for (const panel of ofRow) {
      const { width = 6, kind } = panel;
      if (x + width > columns) [x, y, height] = [0, y + height, 0];
      panels.push(panelOf(panel, ++id, x, y));
      x += width;
      height = Math.max(height, kind === "stat" ? 4 : 8);
    }
    y += height;
  }
  const text = {
    title: "machines-service",
    uid: "machines-service",
    tags: ["machines-service"],
    ...{ schemaVersion: 39, version: 1, editable: true, graphTooltip: 1, refresh: "30s", timezone: "browser" },
    time: { from: "now-3h", to: "now" },
    templating: {
      list: [
        { name: "datasource", label: "Prometheus", type: "datasource", query: "prometheus", refresh: 1, current: {} },
        variable("job", "label_values(machines_service_build_info, job)"),
        variable("app", "label_values(machines_service_app_machines, app)", { allValue: ".*" }),
      ],
    },
    annotations: { list: [] },
    links: [],
    panels,
  };
  return `${JSON.stringify(text, undefined, 2)}\n`;
}
