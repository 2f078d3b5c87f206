// A process for tests of upgrades: opens the store of an older service with a planted migration, and kills itself with SIGKILL
// just before or after the nth statement. Arguments: data folder, n, before|after.
import { writeSync } from "node:fs";
import { DatabaseSync, StatementSync, type SQLInputValue } from "node:sqlite";
import { Store, storeFile } from "../../service/store/database.ts";
import { counted, countedSoFar } from "./killedSelf.ts";
import { plantMigration } from "./oldFolder.ts";

plantMigration();
const [data = ""] = process.argv.slice(2);

const run = StatementSync.prototype.run;
StatementSync.prototype.run = function (this: StatementSync, ...values: SQLInputValue[]) {
  return counted(() => run.apply(this, values as never));
} as typeof run;

// A migration step is many statements in one text. Text that does not compile yet is the beginning of one.
const exec = DatabaseSync.prototype.exec;
DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
  let text = "";
  for (const part of sql.split(/(?<=;)/)) {
    text += part;
    try {
      this.prepare(text);
    } catch (error) {
      if (/incomplete input|no statements/.test(String(error))) continue; // after the check, because a comment may contain a semicolon
      throw error;
    }
    const whole = text;
    text = "";
    counted(() => exec.call(this, whole));
  }
  if (text.trim() !== "") counted(() => exec.call(this, text));
};

new Store(storeFile(data)).close();
writeSync(1, `${countedSoFar()}\n`);
