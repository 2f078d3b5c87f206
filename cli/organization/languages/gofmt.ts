// Formats a program in Go with Go's own formatter.
import { execFileSync } from "node:child_process";

/** The text as `gofmt` writes it; unchanged if there is no Go on this computer. */
export function formatted(source: string): string {
  try {
    return execFileSync("gofmt", { input: source, encoding: "utf8", stdio: "pipe", maxBuffer: 2 ** 28 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return source;
    throw error;
  }
}
