// Why a Machine does not do what it should: the cause, what it wrote last, what has changed, and what one can do.
import type { JSX } from "preact";
import type { LinesView, MachineView } from "../machine.ts";
import { to } from "./address.ts";
import { AsCode } from "./code.tsx";
import { may, useLive } from "./live.ts";
import { Id, Section, Sentence, Time } from "./parts.tsx";
import { Compared } from "./versions.tsx";

type Failure = NonNullable<MachineView["failure"]>;

const titles: Readonly<Record<Failure["kind"], string>> = {
  failed: "Why it has failed",
  looping: "Why it crashes again and again",
  ended: "Why it has ended",
  critical: "Why its checks fail",
};

/** What a Machine's page begins with if the Machine does not do what it should. */
export function FailurePanel({
  at,
  app,
  id,
  view: { machine, canLog },
  failure: { kind, cause, lines: ofExit, before },
}: {
  readonly at: string;
  readonly app: string;
  readonly id: string;
  readonly view: MachineView;
  readonly failure: Failure;
}): JSX.Element {
  const read = useLive<LinesView>(canLog ? `${at}/lines` : undefined, [`machine:${app}/${id}`]).data?.lines ?? [];
  const lines = read.length > 0 ? read : ofExit;
  const current = machine.version ?? "";
  const here = to.machine(app, id);
  const compare = before && `${here}?view=versions&from=${before.version}&to=${current}`;
  return (
    <Section title={titles[kind]}>
      <p class="cause">
        <Sentence of={cause} />
      </p>
      {lines.length > 0 && (
        <>
          <p class="faint">Its last lines:</p>
          <pre tabIndex={0} aria-label="Its last lines">
            {lines.join("\n")}
          </pre>
        </>
      )}
      {before ? (
        <details open>
          <summary>
            {before.ranWell
              ? "What has changed since the last version that ran well"
              : "What has changed since an earlier version; whether that ran well is not known any more"}
          </summary>
          <p class="faint">
            Version <Id>{before.version}</Id>, created <Time at={before.created_at} />, image{" "}
            <span class="mono">{before.image}</span>
          </p>
          <Compared at={at} from={before.version} to={current} isShort />
        </details>
      ) : (
        <p class="faint">No earlier version of this Machine is known to have run well.</p>
      )}
      <p>What you can do:</p>
      <ul>
        {kind !== "critical" && kind !== "looping" && (
          <li>
            {may("operate")
              ? "Start it, with the button above."
              : "Start it with the next update of its program. The buttons of this page need --console write, and a token with the role operate."}
          </li>
        )}
        {canLog && (
          <li>
            <a href={`${here}?view=logs`}>Read all its logs</a>
          </li>
        )}
        {compare && (
          <li>
            Go back as code: <a href={compare}>compare the versions</a>, and give its program the configuration of{" "}
            {before.version}.
          </li>
        )}
        <li>
          Correct its program, and run pulumi up again. As it is now: <AsCode type="Machine" id={`${app}/${id}`} />
        </li>
      </ul>
    </Section>
  );
}
