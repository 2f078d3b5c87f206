// Changes of a Machine, each after a confirmation that names it. They need `--console write`.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Role } from "../../store/roles.ts";
import { ChangeDialog } from "./change.tsx";
import { keepFocus } from "./dialog.tsx";
import { may, send } from "./live.ts";

interface Action {
  readonly name: string;
  readonly does: string;
  readonly method: string;
  readonly path: string;
  readonly isFor: (state: string, isCordoned: boolean) => boolean;
  readonly isGrave?: true;
  /** The role that it needs. Default: `operate`. */
  readonly needs?: Role;
}

const isRunning = (state: string): boolean => state === "started";

const actions: readonly Action[] = [
  {
    name: "Start",
    does: "starts",
    method: "POST",
    path: "/start",
    isFor: (state) => ["stopped", "suspended", "created", "failed"].includes(state),
  },
  { name: "Stop", does: "stops", method: "POST", path: "/stop", isFor: isRunning },
  { name: "Restart", does: "restarts", method: "POST", path: "/restart", isFor: isRunning },
  {
    name: "Cordon",
    does: "takes out of traffic",
    method: "POST",
    path: "/cordon",
    isFor: (state, isCordoned) => !isCordoned && state !== "destroyed",
  },
  {
    name: "Uncordon",
    does: "puts back into traffic",
    method: "POST",
    path: "/uncordon",
    isFor: (state, isCordoned) => isCordoned && state !== "destroyed",
  },
  {
    name: "Destroy",
    does: "destroys for good",
    method: "DELETE",
    path: "?force=true",
    isFor: (state) => !["destroyed", "destroying"].includes(state),
    isGrave: true,
    needs: "deploy",
  },
];

/** The buttons for what can be done with a Machine in its state. */
export function Actions({
  app,
  id,
  name,
  state,
  isCordoned,
}: {
  readonly app: string;
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly isCordoned: boolean;
}): JSX.Element {
  const [asked, ask] = useState<Action>();
  // The button that was used goes when the Machine enters its next state.
  useEffect(keepFocus, [state, isCordoned]);
  return (
    <>
      {actions
        .filter(({ isFor, needs = "operate" }) => may(needs) && isFor(state, isCordoned))
        .map((action) => (
          <button
            key={action.name}
            type="button"
            class={action.isGrave ? "grave" : ""}
            aria-haspopup="dialog"
            onClick={() => ask(action)}
          >
            {action.name}
          </button>
        ))}
      {asked && <Confirm action={asked} app={app} id={id} name={name} onClose={() => ask(undefined)} />}
    </>
  );
}

function Confirm({
  action,
  app,
  id,
  name,
  onClose,
}: {
  readonly action: Action;
  readonly app: string;
  readonly id: string;
  readonly name: string;
  readonly onClose: () => void;
}): JSX.Element {
  const act = async (): Promise<void> => {
    const at = `/v1/apps/${encodeURIComponent(app)}/machines/${encodeURIComponent(id)}`;
    await send(action.method, `${at}${action.path}`, action.method === "POST" ? {} : undefined);
  };
  return (
    <ChangeDialog name={action.name} of={name} act={act} onClose={onClose} {...(action.isGrave ? { typed: name } : {})}>
      <p>
        This {action.does} the Machine <b>{name}</b> ({id}) of the App <b>{app}</b>.
        {action.name === "Destroy" && " A program that declares it creates it again with the next update."}
      </p>
    </ChangeDialog>
  );
}
