// The commands as they are built and published: each starts in a third of the time that its sources take.
import { join } from "node:path";

/** The command `machines-service`. */
export const serviceMain = join(__dirname, "../../service/dist/service/main.js");

/** The command `pulumi-machines`. */
export const cliMain = join(__dirname, "../../sdk/nodejs/dist/cli/main.js");
