// Runs a program on a terminal of its own, as a user would, and answers its questions.
import { spawn } from "node:child_process";
import { quoted } from "../../cli/orphans/importFile.ts";

/** A question, and what is typed. */
export type Answer = readonly [question: RegExp, answer: string];

/** How a program on a terminal ended. */
export interface OnTerminal {
  readonly code: number | null;
  /** Everything the terminal showed, typed answers included. */
  readonly shown: string;
}

/** Runs a program on a terminal to its end. Each answer is typed once its question is shown. */
export function onTerminal(
  program: readonly string[],
  answers: readonly Answer[],
  { cwd, env }: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<OnTerminal> {
  const args =
    process.platform === "linux"
      ? ["-qefc", program.map(quoted).join(" "), "/dev/null"]
      : ["-q", "/dev/null", ...program];
  const child = spawn("script", args, { cwd, env, stdio: ["pipe", "pipe", "inherit"] });
  const left = [...answers];
  return new Promise((resolve, reject) => {
    let [shown, seen] = ["", 0];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      shown += text;
      const [next] = left;
      const found = next?.[0].exec(shown.slice(seen));
      if (!next || !found) return;
      seen += found.index + found[0].length;
      left.shift();
      child.stdin.write(`${next[1]}\n`);
    });
    child.on("error", reject).on("close", (code) => resolve({ code, shown: shown.replaceAll("\r\n", "\n") }));
  });
}
