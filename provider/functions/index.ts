// Every function, by its name in programs.
import type { MachinesFunction } from "../core/function.ts";
import { getApp } from "./getApp.ts";
import { getApps } from "./getApps.ts";
import { getRegions } from "./getRegions.ts";

export const functions: Readonly<Record<string, MachinesFunction>> = { getApp, getApps, getRegions };
