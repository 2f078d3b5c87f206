// Commands in a Machine, one after the other, in a terminal. Each is one request of the interface. With a runtime that has terminals,
// programs get a terminal of their own (tty.tsx).
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { problemOf, send } from "./live.ts";
import { Empty } from "./parts.tsx";
import { openScreen } from "./screen.ts";
import { Tty } from "./tty.tsx";

interface Outcome {
  readonly stdout?: string;
  readonly stderr?: string;
  readonly exit_code?: number;
}

/** A terminal of a shell in the Machine, or one in which each line is a command of it. */
export function Terminal({
  app,
  id,
  state,
  isReal,
}: {
  readonly app: string;
  readonly id: string;
  readonly state: string;
  readonly isReal: boolean;
}): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const isRunning = state === "started";
  useEffect(
    () => (place.current && isRunning && !isReal ? open(place.current, app, id) : undefined),
    [app, id, isRunning, isReal],
  );
  if (!isRunning) return <Empty>A command needs a Machine that runs; this one is {state}.</Empty>;
  if (isReal) return <Tty app={app} id={id} />;
  return <div class="terminal" ref={place} />;
}

const prompt = "\x1b[1m$\x1b[0m ";
const [up, down] = ["\x1b[A", "\x1b[B"];
const nextKey = /^(?:\x1b(?:\[[\d;]*.|O.|.)?|[\0-\x1f\x7f]|[^\0-\x1f\x7f]+)/s;

function open(place: HTMLElement, app: string, id: string): () => void {
  const { screen, close: closeScreen } = openScreen(place, { convertEol: true });
  // Nothing completes with Tab here, and the focus must be able to leave.
  screen.attachCustomKeyEventHandler(({ key }) => key !== "Tab");
  const before: string[] = [];
  let [line, at, waiting, isOver] = ["", 0, "", false];
  let running: AbortController | undefined;
  // Where the line begins is saved, because it may be on several rows of the screen.
  const ask = (): void => screen.write(`${prompt}\x1b7`);
  const show = (text: string): void => {
    line = text;
    screen.write(`\x1b8\x1b[J${text}`);
  };
  const run = async (command: string): Promise<void> => {
    running = new AbortController();
    const { signal } = running;
    try {
      const url = `/v1/apps/${encodeURIComponent(app)}/machines/${encodeURIComponent(id)}/exec`;
      const {
        stdout = "",
        stderr = "",
        exit_code = 0,
      } = await send<Outcome>("POST", url, { command: ["sh", "-c", command] }, signal);
      for (const text of [stdout, stderr]) if (text !== "") screen.write(text.endsWith("\n") ? text : `${text}\n`);
      if (exit_code !== 0) screen.write(`\x1b[2mexit code ${exit_code}\x1b[0m\n`);
    } catch (error) {
      screen.write(signal.aborted ? "^C\n" : `\x1b[31m${problemOf(error)}\x1b[0m\n`);
    }
    running = undefined;
    if (isOver) return;
    ask();
    drain();
  };
  const enter = (): void => {
    const command = line;
    line = "";
    screen.write("\n");
    if (command.trim() === "") return ask();
    before.push(command);
    at = before.length;
    void run(command);
  };
  const press = (key: string): void => {
    if (key === "\r" || key === "\n") return enter();
    if (key === "\x7f") return show([...line].slice(0, -1).join(""));
    if (key === "\x03") {
      line = "";
      screen.write("^C\n");
      return ask();
    }
    if (key === up || key === down) {
      at = Math.min(before.length, Math.max(0, at + (key === up ? -1 : 1)));
      return show(before[at] ?? "");
    }
    if (key >= " ") show(line + key);
  };
  /** Handles what was typed or pasted, as far as no command runs. */
  const drain = (): void => {
    if (running || waiting === "") return;
    const [key = waiting] = nextKey.exec(waiting) ?? [];
    waiting = waiting.slice(key.length);
    press(key);
    drain();
  };
  screen.write(`\x1b[2mEach line is a command of sh in Machine ${id}; none has a terminal of its own.\x1b[0m\n`);
  ask();
  screen.onData((data) => {
    if (running && data.includes("\x03")) {
      waiting = "";
      return running.abort();
    }
    waiting += data;
    drain();
  });
  screen.focus();
  return () => {
    isOver = true;
    closeScreen();
  };
}
