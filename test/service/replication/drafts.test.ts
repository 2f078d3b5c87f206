// What a command changes in a draft of a member's copy fits the leader's store.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { decode, lead, makeChanges, prepareCopy } from "../../../service/replication/changes.ts";
import { RemoteLog } from "../../../service/replication/remoteLog.ts";
import { copyStore } from "../../../service/store/copy.ts";
import { Store } from "../../../service/store/database.ts";
import { schemaOfCopies } from "../../../service/store/memberCopy.ts";
import { addToken, idOf, revokeTokens } from "../../../service/store/tokens.ts";
import { addTrust, removeTrust } from "../../../service/store/trusts.ts";
import { afterThisTest } from "../../support/leftovers.ts";

/** The store of a leader that has an App, a trust and a token of each kind; and a draft of it, as a command has one. */
async function leaderAndDraft() {
  const folder = mkdtempSync(join(tmpdir(), "machines-drafts-"));
  const leader = new Store(join(folder, "leader.db"));
  prepareCopy(leader.db);
  lead(leader.db, schemaOfCopies().triggers);
  await leader.write(() => {
    leader.insert("orgs", { slug: "personal", name: "Personal" });
    leader.insert("apps", { id: "a1", org: 1, name: "web", network: "default", created_at: 1 });
    const trust = {
      name: "ci",
      issuer: "https://ci.example",
      audience: "here",
      claims: {},
      isReusable: false,
    } as const;
    addTrust(leader, "trust", { ...trust, slug: "personal", role: "deploy", apps: ["a1"] }, 1);
    addToken(leader, "of-app", { slug: "personal", apps: ["a1"], expiresAt: null }, 1);
    addToken(leader, "of-trust", { slug: "personal", apps: ["a1"], trust: "trust", expiresAt: null }, 1);
    addToken(leader, "of-organization", { slug: "personal", expiresAt: null }, 1);
  });
  copyStore(leader.db, join(folder, "draft.db"));
  const fits: boolean[] = [];
  const sent = async (changes: Uint8Array): Promise<void> => {
    const recorded = await decode(changes);
    fits.push(await leader.write(() => makeChanges(leader.db, recorded, true)));
  };
  const draft = new Store(join(folder, "draft.db"), (db) => new RemoteLog(db, sent));
  afterThisTest(() => {
    for (const store of [leader, draft]) store.close();
    rmSync(folder, { recursive: true });
  });
  const rows = (table: string): number => leader.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)?.n ?? 0;
  return { leader, draft, fits, rows };
}

test("a token for Apps is revoked, and with it what it is for", async () => {
  const { draft, fits, rows } = await leaderAndDraft();
  await draft.write(() => revokeTokens(draft, idOf("of-app")));
  expect([fits, rows("tokens"), rows("token_apps")]).toEqual([[true], 2, 1]);
});

test("a trust that has given a token is removed, and so is the token", async () => {
  const { draft, fits, rows } = await leaderAndDraft();
  await draft.write(() => removeTrust(draft, "trust"));
  expect([fits, rows("trusts"), rows("tokens"), rows("token_apps")]).toEqual([[true], 0, 2, 1]);
});

test("a token that was used since the command began is revoked", async () => {
  const { leader, draft, fits, rows } = await leaderAndDraft();
  await leader.write(() => leader.run("UPDATE tokens SET used_at = 5"));
  await draft.write(() => revokeTokens(draft, idOf("of-organization")));
  expect([fits, rows("tokens")]).toEqual([[true], 2]);
});

test("changes do not fit if another command has deleted the token, or if the App of a new token was deleted", async () => {
  const { leader, draft, fits, rows } = await leaderAndDraft();
  await leader.write(() => revokeTokens(leader, idOf("of-organization")));
  await draft.write(() => revokeTokens(draft, idOf("of-organization")));
  await leader.write(() => leader.run("DELETE FROM apps"));
  await draft.write(() => addToken(draft, "late", { slug: "personal", apps: ["a1"], expiresAt: null }, 2));
  expect([fits, rows("tokens")]).toEqual([[false, false], 0]);
});
