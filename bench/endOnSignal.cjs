// For --profile: ends a process of its own accord when it is told to end, so that Node.js writes the profile.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(0));
