// Raw ports of Apps, as an operator names them for a proxy of its own.
import type { RawPlace } from "../proxy/rawPlace.ts";
import { Problem } from "./problem.ts";

/** A raw port that other computers reach: `APP:PORT`, or `APP:PORT=PORT THERE`. */
export function rawOf(text: string): RawPlace {
  const [, app, first, second = first] = /^([a-z\d][a-z\d-]*):(\d{1,5})(?:=(\d{1,5}))?$/.exec(text) ?? [];
  const [port, at] = [Number(first), Number(second)];
  if (app === undefined || [port, at].some((one) => one < 1 || one > 65_535))
    throw new Problem(
      `a raw port is the name of an App and a port, such as db:5432 or db:5432=15432, got ${JSON.stringify(text)}`,
    );
  return { app, port, at };
}
