// A process for killAtWrite.test.ts: makes a fixed series of changes on a service, prints the confirmed ones, and kills
// itself with SIGKILL just before or after the nth writing statement. Arguments: data folder, n, before|after.
import { writeSync } from "node:fs";
import { StatementSync, type SQLInputValue } from "node:sqlite";
import { createService, seededRandom } from "../../service/index.ts";
import { counted, countedSoFar } from "./killedSelf.ts";

const [data = ""] = process.argv.slice(2);

const run = StatementSync.prototype.run;
StatementSync.prototype.run = function (this: StatementSync, ...values: SQLInputValue[]) {
  return counted(() => run.apply(this, values as never));
} as typeof run;

const say = (line: unknown): void => void writeSync(1, `${JSON.stringify(line)}\n`);

async function script(): Promise<void> {
  const service = createService({ data, delays: "none", random: seededRandom("scripted") });
  const call = async (method: "GET" | "POST" | "PUT" | "DELETE", path: string, payload?: object) => {
    const headers = { authorization: `Bearer ${service.token}` };
    const answer = await service.app.inject({ method, url: `/v1${path}`, headers, ...(payload ? { payload } : {}) });
    if (answer.statusCode >= 300) throw new Error(`${method} ${path} gave ${answer.statusCode} ${answer.body}`);
    say({ method, path, status: answer.statusCode, body: answer.body === "" ? null : JSON.parse(answer.body) });
    return answer.body === "" ? undefined : JSON.parse(answer.body);
  };
  await call("POST", "/apps", { name: "web", org_slug: "personal" });
  await call("POST", "/apps/web/secrets", { values: { ONE: "1", TWO: "2" } });
  const volume = await call("POST", "/apps/web/volumes", { name: "data", size_gb: 1 });
  const mounts = [{ volume: volume.id, path: "/data" }];
  const machine = await call("POST", "/apps/web/machines", { name: "one", config: { image: "nginx", mounts } });
  const at = `/apps/web/machines/${machine.id}`;
  await call("POST", `${at}/metadata/role`, { value: "leader" });
  await call("POST", at, { config: { image: "nginx:2", mounts } });
  await call("POST", `${at}/stop`, {});
  await call("PUT", `/apps/web/volumes/${volume.id}/extend`, { size_gb: 2 });
  await call("POST", "/apps/web/certificates/acme", { hostname: "www.example.com" });
  await call("POST", "/postgres", { org_slug: "personal", region: "ams", plan: "basic", name: "db" });
  await call("DELETE", at);
  await call("DELETE", "/apps/web/secrets/TWO");
  await service.close();
  say(countedSoFar());
}

void script();
