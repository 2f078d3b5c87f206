// The screen of a terminal.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal as Screen, type ITerminalOptions } from "@xterm/xterm";
import { allowStylesOfTexts, withSheets } from "./sheets.ts";

allowStylesOfTexts();

/** Contrast of the text of programs, whose own colours may be as dark as the ground. It is that of WCAG AA. */
const minimumContrastRatio = 4.5;

/** Usual colours that are too dark, also for the black text of an inverse one, which the contrast above does not change. */
const theme = { red: "#e53935", blue: "#4f86d0", magenta: "#a678a0", brightBlack: "#888a85" };

/** Opens a screen that fills an element. */
export function openScreen(
  place: HTMLElement,
  options: ITerminalOptions = {},
): { readonly screen: Screen; readonly close: () => void } {
  const screen = new Screen({
    cursorBlink: false,
    fontSize: 13,
    screenReaderMode: true,
    minimumContrastRatio,
    theme,
    ...options,
  });
  const fit = new FitAddon();
  screen.loadAddon(fit);
  withSheets(() => screen.open(place));
  fit.fit();
  const resized = new ResizeObserver(() => fit.fit());
  resized.observe(place);
  return {
    screen,
    close() {
      resized.disconnect();
      screen.dispose();
    },
  };
}
