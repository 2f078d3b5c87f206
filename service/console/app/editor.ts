// The editor of queries.
import { autocompletion, closeCompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { PostgreSQL, sql } from "@codemirror/lang-sql";
import { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec, type Extension } from "@codemirror/state";
import { EditorView, keymap, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { TableList } from "../types.ts";

/** An open editor. */
export interface Editor {
  text(): string;
  /** Completes the names of tables and columns. */
  complete(tables: TableList["tables"]): void;
  /** Moves the cursor to a character, as the server counts them; says in words where that is. */
  goTo(position: number): string;
  close(): void;
}

const theme = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--ground)", border: "1px solid var(--line)" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { fontFamily: "var(--mono)", fontSize: "13px", lineHeight: "1.5" },
  ".cm-content": { minHeight: "7.5em", caretColor: "var(--text)" },
  ".cm-placeholder": { color: "var(--faint)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--added)" },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "var(--removed)" },
  ".cm-tooltip": { color: "var(--text)", backgroundColor: "var(--raised)", border: "1px solid var(--line)" },
  // The keys of the editor move through the list, so it is as long as what it shows.
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { maxHeight: "none", overflow: "hidden" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
    color: "var(--on-accent)",
    backgroundColor: "var(--accent)",
  },
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--odd)" },
  { tag: [tags.lineComment, tags.blockComment], color: "var(--faint)" },
]);

const schemaOf = (tables: TableList["tables"]): Extension =>
  sql({
    dialect: PostgreSQL,
    upperCaseKeywords: true,
    defaultSchema: "public",
    schema: Object.fromEntries(
      [...new Set(tables.map(({ schema }) => schema))].map((schema) => [
        schema,
        Object.fromEntries(
          tables.flatMap((one) => (one.schema === schema ? [[one.name, one.columns.map(({ name }) => name)]] : [])),
        ),
      ]),
    ),
  });

/** Opens an editor. Tab is not its key, so that the focus can leave. */
export function openEditor(host: HTMLElement, text: string, run: () => void): Editor {
  const language = new Compartment();
  // The policy of the page forbids style elements. In a root of its own, the library makes style sheets that the policy allows.
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const runs = {
    key: "Mod-Enter",
    run(of: EditorView) {
      closeCompletion(of);
      run();
      return true;
    },
  };
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        ...[
          history(),
          bracketMatching(),
          autocompletion({ maxRenderedOptions: 10 }),
          EditorView.lineWrapping,
          theme,
          syntaxHighlighting(colours),
        ],
        ...[language.of(schemaOf([])), placeholder("SELECT …")],
        EditorView.contentAttributes.of({ "aria-label": "Query", spellcheck: "false" }),
        Prec.highest(keymap.of([runs])),
        keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    complete: (tables) => view.dispatch({ effects: language.reconfigure(schemaOf(tables)) }),
    goTo(position) {
      const { doc } = view.state;
      // The server counts characters, and a script of a page counts some of them as two.
      const at = [...doc.toString()].slice(0, position - 1).join("").length;
      const anchor = Math.min(at, doc.length);
      const { number, from } = doc.lineAt(anchor);
      view.dispatch({ selection: { anchor }, scrollIntoView: true });
      view.focus();
      return `line ${number}, character ${anchor - from + 1}`;
    },
    close: () => view.destroy(),
  };
}
