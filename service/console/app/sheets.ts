// The styles of the terminal, under the policy of the page.

/**
 * Runs a function of the terminal, which writes its style sheets as text. The policy of the page forbids such elements, but not
 * style sheets that a script makes, so it gets those.
 */
export function withSheets(run: () => void): void {
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

/**
 * Lets the terminal write the colours of a text as an attribute, which the policy of the page forbids: it becomes properties, which
 * scripts may set.
 */
export function allowStylesOfTexts(): void {
  HTMLSpanElement.prototype.setAttribute = function (this: HTMLSpanElement, name: string, value: string): void {
    if (name === "style") this.style.cssText = value;
    else Element.prototype.setAttribute.call(this, name, value);
  };
}
