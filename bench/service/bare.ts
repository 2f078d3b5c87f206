// The floor: a server of node:http that reads the request and answers the same bytes every time. Run in a
// separate process like the service: `node bare.ts ANSWER-FILE`. Prints its port. Requests for paths that end in `/wait…` are
// held until the next POST.
import { readFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const answer = readFileSync(process.argv[2] ?? "");
const held: ServerResponse[] = [];

function send(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json; charset=utf-8", "content-length": answer.length });
  response.end(answer);
}

const server = createServer((request, response) => {
  request.resume().on("end", () => {
    if (request.url?.includes("/wait?")) return void held.push(response);
    send(response);
    if (request.method === "POST") for (const one of held.splice(0)) send(one);
  });
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
