// Once per run: a browser for all tests of the console.
import { chromium } from "playwright-core";
import type { TestProject } from "vitest/node";
import { leaveOut } from "../../tools/lib/leftOut.mjs";
import { provideChromium } from "../../tools/setup/chromium.mjs";

declare module "vitest" {
  interface ProvidedContext {
    /** The address of the browser; undefined if there is none. */
    browser: string | undefined;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { file, reason } = await provideChromium();
  if (file === undefined) {
    leaveOut("the console in a browser", reason ?? "there is none");
    project.provide("browser", undefined);
    return async () => {};
  }
  // The sandbox of Chromium does not work for root.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const server = await chromium.launchServer({ executablePath: file, args });
  project.provide("browser", server.wsEndpoint());
  return () => server.close();
}
