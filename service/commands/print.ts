// Output of commands on stdout.

/** Prints a text and a line break. */
export const print = (text: string): void => void process.stdout.write(`${text}\n`);

/** Prints rows in columns, under their headings. */
export function printTable(headings: readonly string[], rows: readonly (readonly string[])[]): void {
  const all = [headings, ...rows];
  const widths = headings.map((_, i) => Math.max(...all.map((row) => row[i]?.length ?? 0)));
  for (const row of all)
    print(
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join("  ")
        .trimEnd(),
    );
}
