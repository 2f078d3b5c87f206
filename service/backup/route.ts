// The route by which commands of this computer ask the running service for a backup. They sign with the key of the data folder: such a
// request may name programs and files, which no token allows.
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { MemberKey } from "../http/memberKey.ts";
import { Refusal, refuse } from "../refusal.ts";
import type { LastResult } from "./places.ts";
import { BackupError } from "./backupError.ts";
import type { Repository } from "./restic.ts";

/** Path of the route. */
export const backupPath = "/-/backup";

const header = "machines-backup";
// A command and the leader may be on different computers, whose clocks differ.
const validMs = 60_000;

/** What a command asks for. */
export type Task =
  | { readonly kind: "back up"; readonly repository?: Repository }
  | {
      readonly kind: "restore an App";
      readonly repository?: Repository;
      readonly app: string;
      readonly id?: string;
      readonly at?: number;
    };

/** What was done. */
export type Done =
  | { readonly kind: "back up"; readonly result: LastResult }
  | { readonly kind: "restore an App"; readonly restored: RestoredApp };

/** An App that was restored. */
export interface RestoredApp {
  readonly backup: string;
  readonly machines: number;
  readonly volumes: number;
  /** What the backup did not have, as sentences. */
  readonly missing: readonly string[];
}

/** The headers and the body of a request. */
export function backupRequest(key: MemberKey, task: Task, now: number) {
  const text = JSON.stringify(task);
  return {
    method: "POST",
    path: backupPath,
    headers: {
      host: "localhost",
      "content-type": "application/json",
      [header]: `${now} ${key.sign(`backup ${now}`, text)}`,
    },
    body: JSON.stringify({ task: text }),
  };
}

function signedTask(key: MemberKey, request: FastifyRequest): Task {
  const { task } = (request.body ?? {}) as { readonly task?: unknown };
  const text = typeof task === "string" ? task : "";
  const [at = "", signature = ""] = String(request.headers[header] ?? "").split(" ");
  if (!key.isValid(`backup ${at}`, text, signature) || Math.abs(Date.now() - Number(at)) >= validMs)
    throw refuse(401, "the request is not signed with the key of the data folder");
  return JSON.parse(text) as Task;
}

/** Adds the route. It is answered when the work is done. */
export function addBackupRoute(app: FastifyInstance, key: MemberKey, act: (task: Task) => Promise<Done>): void {
  app.post(backupPath, { config: { open: true } }, (request) =>
    act(signedTask(key, request)).catch((error: unknown) => {
      throw error instanceof BackupError ? new Refusal(409, { error: error.message }) : error;
    }),
  );
}
