// Where clients come in.
import { expect, test } from "vitest";
import { Entrance } from "../../service/runtime/entrance.ts";

test("connections that outlive an entrance have come to all addresses as before", async () => {
  const entrance = new Entrance((socket) => socket.destroy());
  const everywhere = await entrance.openAll([{ host: "0.0.0.0", port: 0 }]);
  const here = await entrance.openAll([{ host: "127.0.0.1", port: 0 }]);
  expect([entrance.isEverywhereAt(everywhere), entrance.isEverywhereAt(here)]).toEqual([true, false]);
  entrance.close();
  expect([entrance.isEverywhereAt(everywhere), entrance.isEverywhereAt(here)]).toEqual([true, false]);
});
