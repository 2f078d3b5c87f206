#!/usr/bin/env node
// The executable of the converter, which `pulumi convert --from machines-toml` and `pulumi import --from machines` find on
// the PATH.
import "./requireNode.ts";

void import("./conversion/converter.ts").then(({ serveConverter }) => serveConverter(process.argv[1] ?? ""));
