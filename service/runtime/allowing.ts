// Requests that may be refused, such as the removal of something that is already gone.

/** Runs requests and ignores these statuses of their errors; `statusOf` reads the status of an error. */
export const allowingBy =
  (statusOf: (error: unknown) => number | undefined) =>
  async <T>(statuses: readonly number[], request: Promise<T>): Promise<T | undefined> => {
    try {
      return await request;
    } catch (error) {
      if (statuses.includes(statusOf(error) ?? 0)) return undefined;
      throw error;
    }
  };
