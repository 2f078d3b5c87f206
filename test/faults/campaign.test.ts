// A part of the fault campaign with every run of the tests; `npm run test:faults` makes more of it.
import { expect, test } from "vitest";
import { campaign, told } from "./campaign.ts";

const seed = 20_260_101;
/** What is replaced by force, forgotten or targeted is in the stories of examples.ts. */
const only = ["rename", "endpoint", "hook", "elsewhere", "option"];

test("whatever goes wrong: no duplicate, no loss, no secret told, and in the end everything comes right", async () => {
  const { failure } = await campaign({ runs: 50, seed, only });
  expect(failure && told({ seed }, failure)).toBeUndefined();
});
