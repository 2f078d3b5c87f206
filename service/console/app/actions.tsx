// Changes of a Machine, each after a confirmation that names it. They need `--console write`.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { problemOf, send, who } from "./live.ts";
import { Dialog, keepFocus } from "./dialog.tsx";

interface Action {
  readonly name: string;
  readonly does: string;
  readonly method: string;
  readonly path: string;
  readonly isFor: (state: string, isCordoned: boolean) => boolean;
  readonly isGrave?: true;
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
}): JSX.Element | null {
  const [asked, ask] = useState<Action>();
  // The button that was used goes when the Machine enters its next state.
  useEffect(keepFocus, [state, isCordoned]);
  if (!who.value?.canWrite) return null;
  return (
    <>
      {actions
        .filter(({ isFor }) => isFor(state, isCordoned))
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
  const [typed, type] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  // What cannot be undone needs the name, typed.
  const isReady = !isBusy && (!action.isGrave || typed === name);
  const act = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!isReady) return;
    setBusy(true);
    try {
      const at = `/v1/apps/${encodeURIComponent(app)}/machines/${encodeURIComponent(id)}`;
      await send(action.method, `${at}${action.path}`, action.method === "POST" ? {} : undefined);
      onClose();
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={`${action.name} ${name}?`} onClose={onClose}>
      <form onSubmit={(event) => void act(event)}>
        <p>
          This {action.does} the Machine <b>{name}</b> ({id}) of the App <b>{app}</b>.
          {action.name === "Destroy" && " A program that declares it creates it again with the next update."}
        </p>
        {action.isGrave && (
          <label>
            Type its name, {name}:
            <input
              value={typed}
              autoComplete="off"
              spellcheck={false}
              onInput={(event) => type(event.currentTarget.value)}
            />
          </label>
        )}
        {problem !== "" && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class={action.isGrave ? "grave" : "main"} disabled={!isReady}>
          {action.name} {name}
        </button>
      </form>
    </Dialog>
  );
}
