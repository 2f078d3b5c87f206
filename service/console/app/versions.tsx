// The versions of a Machine's configuration, and what differs between any two.
import { diffLines } from "diff";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { MachineConfig } from "../../../api/machineConfig.ts";
import type { MachineView } from "../machine.ts";
import { queryOf, setQuery } from "./address.ts";
import { Failure, send } from "./live.ts";
import { Id, Problem, Table, Time } from "./parts.tsx";

// Of an environment variable with such a name, only whether it differs is shown.
const secretName = /pass|secret|token|key|credential|private|auth|dsn|database_url/i;

const mark = (value: string): string => {
  let sum = 0;
  for (const character of value) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 2_147_483_647;
  return `hidden, ${value.length} characters, ${sum.toString(36)}`;
};

const hidden = ({ env, ...rest }: MachineConfig): string =>
  JSON.stringify(
    env === undefined
      ? rest
      : {
          ...rest,
          env: Object.fromEntries(
            Object.entries(env).map(([name, value]) => [name, secretName.test(name) ? mark(value) : value]),
          ),
        },
    (_, value: unknown) =>
      value !== null && typeof value === "object" && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
        : value,
    2,
  );

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
      <Difference at={at} from={before} to={next} />
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

function Difference({
  at,
  from,
  to,
}: {
  readonly at: string;
  readonly from: string;
  readonly to: string;
}): JSX.Element {
  const [texts, setTexts] = useState<readonly [string, string] | Failure>();
  useEffect(() => {
    let isOver = false;
    Promise.all([configOf(at, from), configOf(at, to)]).then(
      ([one, other]) => isOver || setTexts([hidden(one), hidden(other)]),
      (error: unknown) => isOver || setTexts(error instanceof Failure ? error : new Failure(0, String(error))),
    );
    return () => {
      isOver = true;
    };
  }, [at, from, to]);
  if (!texts) return <p class="faint">Reading …</p>;
  if (texts instanceof Failure) return <Problem error={texts} />;
  const changes = diffLines(...texts);
  return (
    <div>
      {from === to && <p class="faint">This is one version; choose another to compare it with.</p>}
      {from !== to && changes.length === 1 && <p class="faint">The two versions are equal.</p>}
      <pre class="diff" tabIndex={0} aria-label="Difference between the versions">
        {changes.map(({ value, added, removed }, i) => {
          const sign = added ? "+" : removed ? "-" : " ";
          return (
            <span key={i} class={added ? "added" : removed ? "removed" : ""}>
              {value.replace(/^(?=.)/gm, `${sign} `)}
            </span>
          );
        })}
      </pre>
    </div>
  );
}
