// The floor: a server of node:http that reads the request and answers the same bytes every time. Run as a process of its
// own, as the service is: `node bare.ts ANSWER-FILE`. Prints its port.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const answer = readFileSync(process.argv[2] ?? "");
const server = createServer((request, response) => {
  request.resume().on("end", () => {
    response.writeHead(200, { "content-type": "application/json; charset=utf-8", "content-length": answer.length });
    response.end(answer);
  });
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
