// The difference between two configurations of a Machine.
import { diffLines } from "diff";
import type { JSX } from "preact";
import type { MachineConfig } from "../../../api/machineConfig.ts";

// Of an environment variable with such a name, only whether it differs is shown.
const secretName = /pass|secret|token|key|credential|private|auth|dsn|database_url/i;

const mark = (value: string): string => {
  let sum = 0;
  for (const character of value) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 2_147_483_647;
  return `hidden, ${value.length} characters, ${sum.toString(36)}`;
};

const shown = ({ env, ...rest }: MachineConfig): string =>
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

/** Lines around a change that are shown. */
const around = 3;

/** Lines that do not differ, without those that are far from a change. */
function near(text: string, isFirst: boolean, isLast: boolean): string {
  const lines = text.replace(/\n$/, "").split("\n");
  const [above, below] = [isFirst ? 0 : around, isLast ? 0 : around];
  if (lines.length <= above + below + 1) return text;
  return [...lines.slice(0, above), "…", ...(below === 0 ? [] : lines.slice(-below))].join("\n");
}

/** The lines of two configurations; null is none. `equal` is said when they do not differ. `isShort` leaves out what is far from a change. */
export function Difference({
  from,
  to,
  label,
  equal,
  isShort = false,
}: {
  readonly from: MachineConfig | null;
  readonly to: MachineConfig | null;
  readonly label: string;
  readonly equal: string;
  readonly isShort?: boolean;
}): JSX.Element {
  const [before, after] = [from, to].map((config) => (config === null ? "" : shown(config)));
  const changes = diffLines(before ?? "", after ?? "");
  if (isShort && before === after) return <p class="faint">{equal}</p>;
  return (
    <div>
      {before === after && <p class="faint">{equal}</p>}
      <pre class="diff" tabIndex={0} aria-label={label}>
        {changes.map(({ value, added, removed }, i) => {
          const sign = added ? "+" : removed ? "-" : " ";
          const text = isShort && !added && !removed ? near(value, i === 0, i === changes.length - 1) : value;
          return (
            <span key={i} class={added ? "added" : removed ? "removed" : ""}>
              {text.replace(/^(?=.)/gm, `${sign} `)}
            </span>
          );
        })}
      </pre>
    </div>
  );
}
