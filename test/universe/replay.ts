// Replays a story step by step, with the console of whichever member leads.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import type { AddressInfo } from "node:net";
import type { Bug } from "./bugs.ts";
import { play } from "./play.ts";
import type { Story } from "./story.ts";
import type { World } from "./world.ts";

const write = (text: string): void => void process.stdout.write(text);

/** Replays a story. Each line of the input lets the next thing happen; its end lets all of them happen. */
export async function replay(story: Story, bug: Bug | undefined): Promise<void> {
  let world: World | undefined;
  const server = createServer((request, response) => {
    const app = world?.leader?.app;
    if (app) return void app.ready().then(() => app.server.emit("request", request, response));
    response.writeHead(503, { "content-type": "text/plain", "retry-after": "1" }).end("no member leads now\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  write(`The console is at ${url} while a member leads. Return lets the next thing happen.\n`);
  let signedIn: unknown;
  try {
    await play(story, {
      ...{ bug, hasConsole: true },
      onWorld: (made) => (world = made),
      async onNote(line) {
        write(`${line}\n`);
        const { leader } = world ?? {};
        // Every leader has sessions of its own.
        if (leader && leader !== signedIn) write(`    sign in: ${url}/#code=${leader.consoleCode()}\n`);
        signedIn = leader ?? signedIn;
        await lines.next();
      },
    });
    write("No invariant is broken.\n");
  } catch (error) {
    write(`\n${error instanceof Error ? error.message.split("\n\n", 1)[0] : String(error)}\n`);
  } finally {
    server.closeAllConnections();
    server.close();
    await lines.return?.();
  }
}
