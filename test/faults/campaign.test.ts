// A part of the fault campaign runs with every test run; `npm run test:all` runs more of it, `npm run test:faults` any
// part.
import { expect, test } from "vitest";
import { isThorough } from "../support/extent.mts";
import { wholeTest } from "../support/patience.mts";
import { campaign, describeFailure } from "./campaign.ts";

const seed = 20_260_101;
/** The stories of examples.ts cover forced replacement, forgotten resources and targets. */
const only = ["rename", "endpoint", "hook", "elsewhere", "option"];

const extent = isThorough ? { runs: 2000, seed } : { runs: 30, seed, only };

test(
  "no fault causes a duplicate, a loss or a leaked secret, and in the end every run converges",
  { timeout: isThorough ? 24 * wholeTest : wholeTest },
  async () => {
    const { failure } = await campaign(extent);
    expect(failure && describeFailure({ seed }, failure)).toBeUndefined();
  },
);
