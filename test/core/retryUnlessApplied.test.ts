// The loop that sends all creates and changes: it repeats one only if a read shows that nothing was applied.
import { describe, expect, test } from "vitest";
import { ApiError, MachinesError, NetworkError } from "../../provider/client/errors.ts";
import { retryUnlessApplied } from "../../provider/core/retryUnlessApplied.ts";
import { jumpingClient } from "../support/jumpingClient.ts";

const { api } = jumpingClient({ url: "http://localhost:1", token: "t" });
const lost = new NetworkError("the answer was lost", { ambiguous: true });
const refused = new ApiError({
  code: "api",
  status: 409,
  operation: "volumes.create",
  reason: "it exists",
  requestId: undefined,
  problem: "it exists.",
  nextStep: "Choose another name.",
});

/** A request with the given results in order, and a read that shows the result after a number of requests. */
function request(results: readonly (Error | string | undefined)[], visibleAfter = Number.POSITIVE_INFINITY) {
  const sent: string[] = [];
  return {
    sent,
    send: (): Promise<string | undefined> => {
      sent.push("send");
      const result = results[sent.filter((one) => one === "send").length - 1];
      return result instanceof Error ? Promise.reject(result) : Promise.resolve(result);
    },
    look: (isLast: boolean) => {
      const count = sent.filter((one) => one === "send").length;
      sent.push(isLast ? "last look" : "look");
      return Promise.resolve(count >= visibleAfter ? "seen" : undefined);
    },
  };
}

describe("a request", () => {
  test("a request that succeeds is sent once, and nothing is read", async () => {
    const { sent, ...one } = request(["done"]);
    expect(await retryUnlessApplied(api, one)).toBe("done");
    expect(sent).toEqual(["send"]);
  });

  test("a request that was applied although its answer was lost is not sent again", async () => {
    const { sent, ...one } = request([lost], 1);
    expect(await retryUnlessApplied(api, one)).toBe("seen");
    expect(sent).toEqual(["send", "look"]);
  });

  test("a request that was not applied is sent at most three times", async () => {
    const { sent, ...one } = request([lost, lost, lost]);
    await expect(retryUnlessApplied(api, one)).rejects.toBe(lost);
    expect(sent).toEqual(["send", "look", "send", "look", "send", "last look"]);
  });

  test("a request that is refused the second time, because the first was applied, returns the result", async () => {
    const { sent, ...one } = request([lost, refused], 2);
    expect(await retryUnlessApplied(api, one)).toBe("seen");
    expect(sent).toEqual(["send", "look", "send", "last look"]);
  });

  test("a request that is refused the second time for another reason fails with the refusal", async () => {
    const { sent, ...one } = request([lost, refused], 2);
    await expect(retryUnlessApplied(api, { ...one, isDuplicate: () => false })).rejects.toBe(refused);
    expect(sent).toEqual(["send", "look", "send"]);
  });

  test("a request that is refused the first time was certainly not applied", async () => {
    const { sent, ...one } = request([refused]);
    let isCertain = false;
    await expect(retryUnlessApplied(api, { ...one, refused: () => (isCertain = true) })).rejects.toBe(refused);
    expect([sent, isCertain]).toEqual([["send"], true]);
  });

  test("a request that is refused after a lost answer remains ambiguous", async () => {
    let isCertain = false;
    const { sent: _, ...one } = request([lost, refused]);
    await expect(retryUnlessApplied(api, { ...one, refused: () => (isCertain = true) })).rejects.toBe(refused);
    expect(isCertain).toBe(false);
  });

  test("whose answer has no result is looked up, and never sent again", async () => {
    const { sent, ...one } = request([undefined], 1);
    expect(await retryUnlessApplied(api, one)).toBe("seen");
    expect(sent).toEqual(["send", "last look"]);
    await expect(retryUnlessApplied(api, request([undefined]))).rejects.toBeInstanceOf(MachinesError);
  });
});
