// The versions of a Machine's configuration, and what differs between any two.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { MachineConfig } from "../../../api/machineConfig.ts";
import type { MachineView } from "../machine.ts";
import { queryOf, setQuery } from "./address.ts";
import { Difference } from "./difference.tsx";
import { Failure, send } from "./live.ts";
import { Id, Problem, Table, Time } from "./parts.tsx";

/** The versions with the difference between two of them: the current one and the one before, unless others are chosen. */
export function Versions({
  at,
  versions,
  current,
}: {
  readonly at: string;
  readonly versions: MachineView["versions"];
  readonly current: string;
}): JSX.Element {
  const next = queryOf("to") || current;
  const before = queryOf("from") || (versions.find(({ version }) => version < next)?.version ?? next);
  return (
    <div class="split">
      <Table label="Versions" columns={["From", "To", "Version", "Image", "Created"]}>
        {versions.map(({ version, image, created_at }) => (
          <tr key={version} class={version === current ? "current" : ""}>
            {(["from", "to"] as const).map((name) => (
              <td key={name}>
                <input
                  type="radio"
                  name={name}
                  aria-label={`Compare ${name} ${version}`}
                  checked={version === (name === "from" ? before : next)}
                  onChange={() => setQuery({ [name]: version })}
                />
              </td>
            ))}
            <td>
              <Id>{version}</Id>
              {version === current && " current"}
            </td>
            <td class="mono">{image}</td>
            <td>
              <Time at={created_at} />
            </td>
          </tr>
        ))}
      </Table>
      <Compared at={at} from={before} to={next} />
    </div>
  );
}

const read = new Map<string, Promise<MachineConfig>>();

/** A version never changes, so it is read once. */
function configOf(at: string, version: string): Promise<MachineConfig> {
  const key = `${at}/versions/${encodeURIComponent(version)}`;
  let found = read.get(key);
  if (!found) {
    found = send<MachineConfig>("GET", key);
    found.catch(() => read.delete(key));
    read.set(key, found);
  }
  return found;
}

/** The difference between two versions. */
export function Compared({
  at,
  from,
  to,
  isShort = false,
}: {
  readonly at: string;
  readonly from: string;
  readonly to: string;
  readonly isShort?: boolean;
}): JSX.Element {
  const [configs, setConfigs] = useState<readonly [MachineConfig, MachineConfig] | Failure>();
  useEffect(() => {
    let isOver = false;
    Promise.all([configOf(at, from), configOf(at, to)]).then(
      (both) => isOver || setConfigs(both),
      (error: unknown) => isOver || setConfigs(error instanceof Failure ? error : new Failure(0, String(error))),
    );
    return () => {
      isOver = true;
    };
  }, [at, from, to]);
  if (!configs) return <p class="faint">Reading …</p>;
  if (configs instanceof Failure) return <Problem error={configs} />;
  const [one, other] = configs;
  const equal = from === to ? "This is one version; choose another to compare it with." : "The two versions are equal.";
  return <Difference from={one} to={other} label="Difference between the versions" equal={equal} isShort={isShort} />;
}
