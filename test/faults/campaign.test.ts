// A part of the fault campaign with every run of the tests; `npm run test:all` makes more of it, `npm run test:faults` any.
import { expect, test } from "vitest";
import { isThorough } from "../support/extent.mts";
import { wholeTest } from "../support/patience.mts";
import { campaign, told } from "./campaign.ts";

const seed = 20_260_101;
/** What is replaced by force, forgotten or targeted is in the stories of examples.ts. */
const only = ["rename", "endpoint", "hook", "elsewhere", "option"];

const extent = isThorough ? { runs: 2000, seed } : { runs: 50, seed, only };

test(
  "whatever goes wrong: no duplicate, no loss, no secret told, and in the end everything comes right",
  { timeout: isThorough ? 24 * wholeTest : wholeTest },
  async () => {
    const { failure } = await campaign(extent);
    expect(failure && told({ seed }, failure)).toBeUndefined();
  },
);
