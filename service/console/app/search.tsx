// The search over everything, in front of the page.
import { signal } from "@preact/signals";
import type { JSX, TargetedKeyboardEvent } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { FoundGroup, FoundItem, SearchView } from "../types.ts";
import { go, to } from "./address.ts";
import { Dialog } from "./dialog.tsx";
import { problemOf, send, who } from "./live.ts";
import { some } from "./words.ts";

const isOpen = signal(false);

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

/** Milliseconds without a key until it searches. */
const pauseMs = 120;

// On a Mac, Ctrl-K edits text; elsewhere the terminal needs it.
document.addEventListener("keydown", (event) => {
  const isChord = (isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey) && !event.altKey;
  if (!isChord || event.shiftKey || event.key.toLowerCase() !== "k" || who.peek() == null) return;
  if (!isMac && (event.target as Element | null)?.closest(".terminal")) return;
  event.preventDefault();
  // Another dialog is answered first.
  if (!document.querySelector("dialog[open]")) isOpen.value = true;
});

/** The button that opens the search, for the header. */
export const SearchButton = (): JSX.Element => (
  <button type="button" aria-keyshortcuts={isMac ? "Meta+K" : "Control+K"} onClick={() => (isOpen.value = true)}>
    Search <kbd aria-hidden="true">{isMac ? "⌘K" : "Ctrl K"}</kbd>
  </button>
);

/** The search, while it is open. */
export const Search = (): JSX.Element | null =>
  isOpen.value ? (
    <Dialog title="Search" onClose={() => (isOpen.value = false)}>
      <Box />
    </Dialog>
  ) : null;

const titles: Readonly<Record<FoundGroup["kind"], string>> = {
  App: "Apps",
  Machine: "Machines",
  hostname: "Hostnames",
  cluster: "Clusters",
  rollout: "Rollouts",
  stack: "Stacks",
  request: "Requests",
};

function hrefOf({
  app = "",
  machine,
  query,
  cluster,
  rollout,
  request,
  requestsOf,
  rolloutsOf,
}: FoundItem["place"]): string {
  if (cluster !== undefined) return to.cluster(cluster);
  if (rollout !== undefined) return to.rollout(rollout);
  if (request !== undefined) return to.requestsWith({ text: request });
  if (requestsOf !== undefined) return to.requestsWith({ by: requestsOf });
  if (rolloutsOf !== undefined) return `${to.rollouts}?${new URLSearchParams({ text: rolloutsOf })}`;
  if (machine !== undefined) return to.machine(app, machine);
  return query === undefined ? to.app(app) : `${to.app(app)}?${query}`;
}

/** Opens a result. Its view gets the focus, because the page that had it is gone. */
function open({ place }: FoundItem): void {
  isOpen.value = false;
  go(hrefOf(place));
  window.scrollTo(0, 0);
  window.setTimeout(() => document.querySelector("main")?.focus({ preventScroll: true }));
}

interface Found {
  /** The text that was searched. */
  readonly text: string;
  readonly groups: readonly FoundGroup[];
  readonly problem?: string;
}

const nothing: Found = { text: "", groups: [] };

/** What the service finds, once the text has not changed for a moment. */
function useFound(text: string): Found {
  const [found, setFound] = useState(nothing);
  useEffect(() => {
    if (text === "") return setFound(nothing);
    const gone = new AbortController();
    const search = (): void => {
      send<SearchView>("GET", `/console/api/search?${new URLSearchParams({ q: text })}`, undefined, gone.signal).then(
        ({ groups }) => setFound({ text, groups }),
        (error: unknown) => {
          if (!gone.signal.aborted) setFound({ text, groups: [], problem: problemOf(error) });
        },
      );
    };
    const timer = window.setTimeout(search, pauseMs);
    return () => {
      window.clearTimeout(timer);
      gone.abort();
    };
  }, [text]);
  return found;
}

function Box(): JSX.Element {
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(0);
  const text = typed.trim();
  const found = useFound(text);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const items = found.groups.flatMap((group) => group.items);
  const at = Math.min(chosen, items.length - 1);
  useEffect(() => setChosen(0), [found]);
  useEffect(
    () => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }),
    [at, found],
  );
  const steps: Readonly<Record<string, number>> = {
    ArrowDown: at + 1 < items.length ? at + 1 : 0,
    ArrowUp: at > 0 ? at - 1 : items.length - 1,
    PageDown: Math.min(items.length - 1, at + 6),
    PageUp: Math.max(0, at - 6),
  };
  const press = (event: TargetedKeyboardEvent<HTMLInputElement>): void => {
    const next = steps[event.key];
    const item = items[at];
    if (next !== undefined) {
      event.preventDefault();
      setChosen(next);
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      // What is shown may still be of an earlier text.
      if (item && found.text === text) open(item);
    }
  };
  let number = 0;
  return (
    <div class="search">
      <input
        // The dialog gives it the focus.
        autofocus
        // In a field for searches, Escape would remove the text.
        type="text"
        role="combobox"
        list={undefined}
        aria-label="Search everything"
        aria-expanded={items.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        {...(items.length > 0 ? { "aria-activedescendant": `${id}-${at}` } : {})}
        placeholder="App, Machine, hostname, cluster, rollout, stack or request"
        autocomplete="off"
        spellcheck={false}
        maxLength={100}
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onKeyDown={press}
      />
      <p class="faint" role="status">
        {said(text, found, items.length)}
      </p>
      <div role="listbox" id={`${id}-list`} ref={list} aria-label="Results">
        {found.groups.map(({ kind, items: own, isMore }) => (
          <div role="group" key={kind} aria-labelledby={`${id}-${kind}`}>
            <div class="kind" id={`${id}-${kind}`} role="presentation">
              {titles[kind]} {isMore && <span>the best {own.length}</span>}
            </div>
            {own.map((item) => {
              const place = number++;
              return (
                <div
                  key={place}
                  role="option"
                  id={`${id}-${place}`}
                  aria-selected={place === at}
                  onMouseDown={(event) => event.preventDefault()}
                  onClick={() => open(item)}
                >
                  <bdi>{item.text}</bdi> <bdi class="faint">{item.about}</bdi>
                </div>
              );
            })}
          </div>
        ))}
      </div>
    </div>
  );
}

function said(text: string, found: Found, count: number): string {
  if (text === "") return "The arrow keys choose, Enter opens, Escape closes.";
  if (found.text !== text) return "Searching …";
  return found.problem ?? (count === 0 ? "Nothing is like that." : some(count, "result"));
}
