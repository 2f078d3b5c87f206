// Commands in a Machine, one after the other, in a terminal. Each is one request of the interface.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal as Screen } from "@xterm/xterm";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Failure, send } from "./live.ts";
import { Empty } from "./parts.tsx";

interface Outcome {
  readonly stdout?: string;
  readonly stderr?: string;
  readonly exit_code?: number;
}

/** A terminal in which each line is a command of a shell in the Machine. */
export function Terminal({
  app,
  id,
  state,
}: {
  readonly app: string;
  readonly id: string;
  readonly state: string;
}): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const isRunning = state === "started";
  useEffect(() => (place.current && isRunning ? open(place.current, app, id) : undefined), [app, id, isRunning]);
  if (!isRunning) return <Empty>A command needs a Machine that runs; this one is {state}.</Empty>;
  return <div class="terminal" ref={place} />;
}

const prompt = "\x1b[1m$\x1b[0m ";

/**
 * Runs a function of the terminal, which writes its style sheets as text. The policy of the page forbids such elements, but not
 * style sheets that a script makes, so it gets those.
 */
function withSheets(run: () => void): void {
  const create = document.createElement.bind(document);
  document.createElement = (tag: string) => (tag === "style" ? sheetElement(create("span")) : create(tag));
  try {
    run();
  } finally {
    document.createElement = create;
  }
}

/** Makes an element act as a style element. */
function sheetElement(element: HTMLElement): HTMLElement {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  element.hidden = true;
  Object.defineProperties(element, {
    sheet: { value: sheet },
    textContent: {
      set(text: string) {
        sheet.replaceSync(text);
      },
    },
  });
  return element;
}

function open(place: HTMLElement, app: string, id: string): () => void {
  const screen = new Screen({
    convertEol: true,
    cursorBlink: false,
    fontSize: 13,
    screenReaderMode: true,
  });
  const fit = new FitAddon();
  screen.loadAddon(fit);
  withSheets(() => screen.open(place));
  fit.fit();
  const resized = new ResizeObserver(() => fit.fit());
  resized.observe(place);
  const before: string[] = [];
  let [line, at, isBusy, isOver] = ["", 0, false, false];
  const show = (text: string): void => {
    screen.write("\b \b".repeat(line.length));
    line = text;
    screen.write(text);
  };
  const run = async (command: string): Promise<void> => {
    isBusy = true;
    try {
      const url = `/v1/apps/${encodeURIComponent(app)}/machines/${encodeURIComponent(id)}/exec`;
      const {
        stdout = "",
        stderr = "",
        exit_code = 0,
      } = await send<Outcome>("POST", url, { command: ["sh", "-c", command] });
      for (const text of [stdout, stderr]) if (text !== "") screen.write(text.endsWith("\n") ? text : `${text}\n`);
      if (exit_code !== 0) screen.write(`\x1b[2mexit code ${exit_code}\x1b[0m\n`);
    } catch (error) {
      screen.write(`\x1b[31m${error instanceof Failure ? error.message : String(error)}\x1b[0m\n`);
    }
    isBusy = false;
    if (!isOver) screen.write(prompt);
  };
  screen.write(
    `\x1b[2mEach line is a command of sh in Machine ${id}; none has a terminal of its own.\x1b[0m\n${prompt}`,
  );
  screen.onData((data) => {
    if (isBusy) return;
    if (data === "\r") {
      const command = line;
      screen.write("\n");
      line = "";
      if (command.trim() === "") return screen.write(prompt);
      before.push(command);
      at = before.length;
      return void run(command);
    }
    if (data === "\x7f") return show(line.slice(0, -1));
    if (data === "\x03") {
      line = "";
      return screen.write(`^C\n${prompt}`);
    }
    if (data === "\x1b[A" || data === "\x1b[B") {
      at = Math.min(before.length, Math.max(0, at + (data === "\x1b[A" ? -1 : 1)));
      return show(before[at] ?? "");
    }
    const typed = data.replaceAll(/[^\x20-\x7e\u00a0-\uffff]/g, "");
    line += typed;
    screen.write(typed);
  });
  screen.focus();
  return () => {
    isOver = true;
    resized.disconnect();
    screen.dispose();
  };
}
