// Takes the place of test/support/startService.ts when the specification tests run against several members (vitest.config.mts): every
// request goes through a standby to the leader, whose log has every change.
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, vi } from "vitest";
import { ManualClock, type Clock } from "../../../../service/index.ts";
import { connectionLimits } from "../../../../service/http/connections.ts";
import { Front } from "../../../../service/http/front.ts";
import { MemberKey } from "../../../../service/http/memberKey.ts";
import { catchUp } from "../../../../service/replication/catchUp.ts";
import { positionOf } from "../../../../service/replication/changes.ts";
import type { GroupLog } from "../../../../service/replication/groupLog.ts";
import { LeaderLog } from "../../../../service/replication/leaderLog.ts";
import { MemoryLog } from "../../../../service/replication/memoryLog.ts";
import { MemberCopy, schemaOfCopies } from "../../../../service/store/memberCopy.ts";
import { hang } from "../../../support/patience.mts";
import { startService as startAlone, type TestService } from "../../../support/startService.ts";
import { contentsOf } from "../copies.ts";

export type { TestService };

// Longer than any test: the leader never loses it.
const leaseMs = 3600_000;

async function startFront(key: MemberKey): Promise<{ readonly front: Front; readonly url: string }> {
  const limits = connectionLimits({}, false);
  const front = new Front({ limits, tls: undefined, key, answerSelf: () => false });
  front.server.listen(0, "127.0.0.1");
  await once(front.server, "listening");
  return { front, url: `http://127.0.0.1:${(front.server.address() as AddressInfo).port}` };
}

/** Throws unless a new copy, made of nothing but the log, equals the leader's. */
async function requireEqualCopy({ service: { context } }: TestService, log: MemoryLog): Promise<void> {
  const { store } = context;
  store.flush();
  const { seq } = positionOf(store.db);
  await vi.waitFor(async () => expect((await log.end()).seq).toBe(seq), { timeout: hang, interval: 1 });
  const folder = mkdtempSync(join(tmpdir(), "machines-copy-"));
  const file = join(folder, "service.db");
  const copy = new MemberCopy(file);
  try {
    await catchUp(copy, log);
    const db = new DatabaseSync(file, { readOnly: true });
    expect(contentsOf(db)).toEqual(contentsOf(store.db));
    db.close();
  } finally {
    copy.close();
    rmSync(folder, { recursive: true });
  }
}

/** Acknowledges each change at once. A clock that stands still does not wait until what was due is in the log. */
const atOnce = (log: GroupLog): GroupLog => ({
  begin: () => log.begin(),
  end: () => log.end(),
  discard: () => log.discard(),
  committed: () => void log.committed(),
  unsure: undefined,
});

/** Starts a leader and two standbys, one of which gets all requests. */
export async function startService<C extends Clock | undefined = undefined>(
  options: Parameters<typeof startAlone<C>>[0] = {},
): Promise<TestService<C>> {
  const key = new MemberKey(randomBytes(32));
  const [leader, standby, other] = await Promise.all([startFront(key), startFront(key), startFront(key)]);
  const log = new MemoryLog(() => performance.now());
  const epoch = (await log.takeOver(0, { id: "leader", address: leader.url }, leaseMs)) ?? 0;
  const leading = {
    ...{ log, epoch },
    pause: async () => {},
    lost: () => expect.unreachable("the leader lost its leadership"),
    unsure: () => undefined,
  };
  const service = await startAlone<C>({
    ...options,
    leading: {
      log(db) {
        const made = new LeaderLog(db, schemaOfCopies(), leading);
        return options.clock instanceof ManualClock ? atOnce(made) : made;
      },
      lock: { release() {} },
      run: String(epoch),
      serve: (handler) => leader.front.attach(handler),
    },
  });
  leader.front.answer(leader.url);
  for (const { front } of [standby, other]) front.follow(leader.url);
  return {
    ...service,
    url: standby.url,
    async close() {
      await requireEqualCopy(service, log);
      await service.close();
      for (const { front } of [standby, other, leader]) {
        front.cut();
        await front.end();
      }
    },
  };
}
