#!/usr/bin/env node
// The executable: what is loaded after the check may need a newer Node.js than the one that it runs on.
import "./requireNode.ts";

void import("./command.ts");
