// Once per run: the installed packages.
export { provideInstalled as default } from "../support/install.ts";
