// Faults: switch one on, see what it hits, switch it off.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { FaultList } from "../types.ts";
import { problemOf, send, useLive } from "./live.ts";
import { Alert, Code, Empty, NoView, say, Section } from "./parts.tsx";
import { RequestTable } from "./requestTable.tsx";
import { some } from "./words.ts";

const presets: readonly (readonly [name: string, fault: Readonly<Record<string, unknown>>])[] = [
  ["Answer with an error", { status: 503 }],
  ["Close the connection after the change", { status: "reset", when: "after" }],
  ["Answer late", { delayMs: 3000 }],
  ["No capacity", { capacity: true }],
  ["Too many requests", { status: 429, headers: { "retry-after": "1" } }],
  ["Another client takes the lease", { stealLease: { ttl: 30 } }],
  ["Hosts cannot be reached", { unreachableHost: {} }],
];

/** The view of the faults. */
export function FaultsPage(): JSX.Element {
  const { data, error } = useLive<FaultList>("/console/api/faults", ["faults"]);
  if (!data) return <NoView name="Faults" error={error} />;
  return (
    <>
      <h1>Faults</h1>
      {data.isOn ? (
        <>
          <NewFault operations={data.operations} />
          {data.faults.length === 0 && <Empty>No fault is switched on: the service answers as it should.</Empty>}
          {data.faults.map(({ id, seen, fault, hits }) => (
            <Section
              key={id}
              title={id}
              aside={
                <button
                  type="button"
                  onClick={() => void send("DELETE", `/console/api/faults/${encodeURIComponent(id)}`).catch(say)}
                >
                  Switch off {id}
                </button>
              }
            >
              <pre>{JSON.stringify(fault)}</pre>
              <p class="faint">It concerned {some(seen, "request")} so far.</p>
              {hits.length > 0 && <RequestTable label={`Requests that ${id} hit`} requests={hits} />}
            </Section>
          ))}
          {data.before.length > 0 && (
            <Section title="Hit before" aside={<span class="faint">by faults that are off again</span>}>
              <RequestTable label="Requests that other faults hit" requests={data.before} />
            </Section>
          )}
        </>
      ) : (
        <>
          <Empty>
            Faults can be switched on here when the admin listener is on, and the console was opened by the command:
          </Empty>
          <Code label="the commands for faults">{`machines-service start --admin 127.0.0.1:0\nmachines-service console`}</Code>
        </>
      )}
    </>
  );
}

function NewFault({ operations }: { readonly operations: readonly string[] }): JSX.Element {
  const [operation, setOperation] = useState("machines.create");
  const [preset, setPreset] = useState(0);
  const [times, setTimes] = useState("1");
  const [problem, setProblem] = useState("");
  const fault = {
    ...(operation === "" ? {} : { operation }),
    ...presets[preset]?.[1],
    times: times === "always" ? times : Number(times),
  };
  const plan = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await send("POST", "/console/api/faults", fault);
      setProblem("");
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  return (
    <form class="filters" onSubmit={(event) => void plan(event)}>
      <select aria-label="Effect" value={preset} onChange={(event) => setPreset(Number(event.currentTarget.value))}>
        {presets.map(([name], i) => (
          <option key={name} value={i}>
            {name}
          </option>
        ))}
      </select>
      <select aria-label="Operation" value={operation} onChange={(event) => setOperation(event.currentTarget.value)}>
        <option value="">any operation</option>
        {operations.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
      <select aria-label="Times" value={times} onChange={(event) => setTimes(event.currentTarget.value)}>
        {["1", "2", "5", "always"].map((one) => (
          <option key={one} value={one}>
            {one === "always" ? "always" : some(Number(one), "time")}
          </option>
        ))}
      </select>
      <button type="submit" class="main">
        Switch on
      </button>
      <Alert>{problem}</Alert>
    </form>
  );
}
