// The screen of a terminal.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal as Screen, type ITerminalOptions } from "@xterm/xterm";
import { withSheets } from "./sheets.ts";

/** Opens a screen that fills an element. */
export function openScreen(
  place: HTMLElement,
  options: ITerminalOptions = {},
): { readonly screen: Screen; readonly close: () => void } {
  const screen = new Screen({ cursorBlink: false, fontSize: 13, screenReaderMode: true, ...options });
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
