// The help, in front of the page: keys, commands, and how an AI assistant gets to the same facts.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { docsUrl } from "../../../api/docsUrl.ts";
import { Dialog } from "./dialog.tsx";
import { Code } from "./parts.tsx";

const isOpen = signal(false);

/** The button that opens the help, for the header. */
export const HelpButton = (): JSX.Element => (
  <button type="button" class="plain" onClick={() => (isOpen.value = true)}>
    Help
  </button>
);

/** The entry for the settings of an assistant, as most of them have it. */
const entry = JSON.stringify(
  { mcpServers: { machines: { command: "npx", args: ["pulumi-machines", "mcp"] } } },
  undefined,
  2,
);

/** The help, while it is open. */
export const Help = (): JSX.Element | null =>
  isOpen.value ? (
    <Dialog title="Help" onClose={() => (isOpen.value = false)}>
      <h3>Keys</h3>
      <p>
        <kbd>Ctrl</kbd> <kbd>K</kbd>, on a Mac <kbd>⌘</kbd> <kbd>K</kbd>, searches everything. <kbd>Ctrl</kbd>{" "}
        <kbd>Shift</kbd> <kbd>F6</kbd> leaves a terminal, <kbd>Esc</kbd> closes a dialog.
      </p>
      <h3>Documentation</h3>
      <p>
        <a href={docsUrl("console.md")}>This console</a>,{" "}
        <a href={docsUrl("troubleshooting.md")}>errors and remedies</a>, <a href="/docs">every operation of the API</a>.
      </p>
      <h3>AI assistants</h3>
      <p>
        <code>npx pulumi-machines mcp</code> lets an assistant list, show, explain and plan. It changes nothing unless
        you add <code>--allow-changes</code>, and shows no secret. In the folder of a project, most assistants take{" "}
        <a href={docsUrl("agents.md")}>this entry</a>:
      </p>
      <Code label="the entry for an assistant">{entry}</Code>
    </Dialog>
  ) : null;
