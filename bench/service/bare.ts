// The floor: a server of node:http that reads the request and answers the same bytes every time. Run in a
// separate process like the service: `node bare.ts ANSWER-FILE [STORE]`. Prints its port. Requests for paths that end in `/wait…` are
// held until the next POST. With a store, a POST is answered once its answer is on the disk: the requests of one turn of the event
// loop share a transaction, like those of the service.
import { readFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { DatabaseSync } from "node:sqlite";

const [, , file = "", store] = process.argv;
const answer = readFileSync(file);
const held: ServerResponse[] = [];

function send(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json; charset=utf-8", "content-length": answer.length });
  response.end(answer);
}

/** Returns what makes an answer durable before it is sent. */
function storing(path: string): (response: ServerResponse) => void {
  const db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000");
  db.exec("CREATE TABLE answers (text TEXT NOT NULL)");
  const insert = db.prepare("INSERT INTO answers VALUES (?)");
  const text = answer.toString();
  let together: ServerResponse[] = [];
  const commit = (): void => {
    const all = together;
    together = [];
    db.exec("BEGIN IMMEDIATE");
    for (let i = 0; i < all.length; i++) insert.run(text);
    db.exec("COMMIT");
    for (const response of all) send(response);
  };
  return (response) => {
    if (together.push(response) === 1) setImmediate(commit);
  };
}

const answerPost = store === undefined ? send : storing(store);

const server = createServer((request, response) => {
  request.resume().on("end", () => {
    if (request.url?.includes("/wait?")) return void held.push(response);
    if (request.method !== "POST") return send(response);
    answerPost(response);
    for (const one of held.splice(0)) send(one);
  });
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
