// For --profile: a signal makes the process exit normally, so that Node.js writes the profile.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(0));
