// Bugs that are planted into the service for a test: changes of its built code while it is loaded (plant.mjs).

/** A change of a file; the text must occur in it. */
interface Change {
  /** End of the file's path. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** A bug that breaks a promise of the service. */
export interface Bug {
  readonly name: string;
  readonly changes: readonly Change[];
}

/** The bugs, each of which the checker must find. */
export const bugs: readonly Bug[] = [
  {
    name: "an update ignores current_version",
    changes: [
      {
        file: "/service/rules/machines.js",
        find: "body.current_version !== undefined && body.current_version !== old.version",
        replace: "false",
      },
    ],
  },
];
