/** Reads an option that takes several values: given several times, or divided by commas. */
export const names = (text: string, before: readonly string[] = []): string[] => [...before, ...text.split(",")];
