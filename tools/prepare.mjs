// `npm install` runs this: with `pulumi package add <this repository>`, Pulumi clones it, runs `npm install` there, and starts
// the plugin. The commands of this repository build everything themselves, when it is needed.
import { bundlePlugin } from "./setup/bundlePlugin.mjs";

if (process.env.PULUMI_MACHINES_SETUP !== "1") await bundlePlugin();
