// Parts that the pages of the service share.

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Text as HTML. */
export const escape = (text: string): string =>
  text.replace(/[&<>"]/g, (character) => entities[character] ?? character);

/** Plain text with `code` in it, as HTML. */
export const prose = (text: string): string => escape(text).replace(/`([^`]+)`/g, "<code>$1</code>");

const style = `
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0; } th { text-align: left; }
th, td { padding: .15rem .9rem .15rem 0; vertical-align: top; border-bottom: 1px solid #8884; }
details { border: 1px solid #8886; border-radius: 4px; margin: .4rem 0; padding: .3rem .7rem; overflow-x: auto; }
summary { cursor: pointer; } summary b { display: inline-block; width: 4.5rem; } summary i { font-style: normal; opacity: .65; float: right; }
summary span { display: block; margin-left: 5.2rem; opacity: .8; }
code, pre { font: 13px/1.45 ui-monospace, monospace; } pre { background: #8882; padding: .6rem; overflow-x: auto; }
input { font: inherit; width: 24rem; max-width: 100%; padding: .2rem .5rem; }
`;

/** A whole page. It loads nothing. */
export const htmlPage = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title><style>${style}</style></head>
<body>
${body}
</body>
</html>
`;

/** The content security policy of a page: nothing is loaded, and no script runs except the one with this hash. */
export const contentPolicy = (scriptHash?: string): string =>
  [
    "default-src 'none'",
    "style-src 'unsafe-inline'",
    ...(scriptHash === undefined ? [] : [`script-src '${scriptHash}'`]),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
