// A terminal of a program in a Machine, by a WebSocket.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { terminalProtocol } from "../../http/terminalProtocol.ts";
import { openScreen } from "./screen.ts";
import { protocolsWith } from "./session.ts";

/** Characters of one message: the service takes 64 KiB. */
const longest = 8192;

/** A terminal of a shell in a Machine. */
export function Tty({ app, id }: { readonly app: string; readonly id: string }): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const [number, again] = useState(0);
  const [end, setEnd] = useState("");
  useEffect(() => {
    setEnd("");
    return place.current ? open(place.current, app, id, setEnd) : undefined;
  }, [app, id, number]);
  return (
    <>
      <p class="faint" id="leave-terminal">
        Tab is a key of the program. To leave the terminal, press Ctrl-Shift-F6.
      </p>
      <div class="terminal" role="group" aria-label="Terminal" aria-describedby="leave-terminal" ref={place} />
      {end !== "" && (
        <p role="status">
          {end}{" "}
          <button type="button" onClick={() => again(number + 1)}>
            Open another
          </button>
        </p>
      )}
    </>
  );
}

interface Said {
  readonly opened?: true;
  readonly exit?: number | null;
  readonly problem?: string;
}

const sentenceOf = ({ exit, problem }: Said): string =>
  problem === undefined
    ? `The program has ended${typeof exit === "number" ? ` with exit code ${exit}` : ""}.`
    : `The terminal has ended: ${problem}.`;

function open(place: HTMLElement, app: string, id: string, ended: (why: string) => void): () => void {
  const { screen, close: closeScreen } = openScreen(place);
  const path = `/local/apps/${encodeURIComponent(app)}/machines/${encodeURIComponent(id)}/terminal`;
  const url = `${location.origin.replace(/^http/, "ws")}${path}`;
  const socket = new WebSocket(url, protocolsWith(terminalProtocol));
  socket.binaryType = "arraybuffer";
  const size = () => JSON.stringify({ columns: screen.cols, rows: screen.rows });
  const bytes = new TextEncoder();
  let why = "The terminal has ended: the service cannot be reached, or refuses it.";
  const isOpen = (): boolean => socket.readyState === WebSocket.OPEN;
  let read = 0;
  const tellRead = (bytes: number): void => {
    read += bytes;
    if (isOpen()) socket.send(JSON.stringify({ read }));
  };
  socket.addEventListener("open", () => {
    socket.send(size());
    tellRead(0);
  });
  socket.addEventListener("message", ({ data }: MessageEvent<ArrayBuffer | string>) => {
    if (typeof data !== "string") return screen.write(new Uint8Array(data), () => tellRead(data.byteLength));
    const said = JSON.parse(data) as Said;
    if (!said.opened) why = sentenceOf(said);
  });
  const close = (): void => ended(why);
  socket.addEventListener("close", close);
  screen.onResize(() => isOpen() && socket.send(size()));
  screen.onData((typed) => {
    if (!isOpen()) return;
    for (let at = 0; at < typed.length; at += longest) socket.send(bytes.encode(typed.slice(at, at + longest)));
  });
  screen.attachCustomKeyEventHandler(({ key, ctrlKey, shiftKey }) => {
    if (key !== "F6" || !ctrlKey || !shiftKey) return true;
    screen.blur();
    return false;
  });
  screen.focus();
  return () => {
    socket.removeEventListener("close", close);
    socket.close();
    closeScreen();
  };
}
