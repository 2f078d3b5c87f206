// The parts of a resource that the engine shows and stores as resources of their own: Pulumi calls them views.

type Values = Readonly<Record<string, unknown>>;

/** A part of a resource. */
export interface View {
  /** Type name in PascalCase (`FleetMachine`). */
  readonly type: string;
  /** Unique among the views of this type that the resource has. */
  readonly name: string;
  readonly inputs: Values;
  readonly outputs: Values;
}

/** How one view changes in a request. */
export interface ViewStep {
  /** `read`: it existed before, and the state gets it now. */
  readonly op: "create" | "update" | "delete" | "read";
  /** As the state has it; undefined if it has none. */
  readonly old?: View | undefined;
  /** As it is afterwards; undefined if it is gone. */
  readonly new?: View | undefined;
  /** Paths of the fields that change, where its values do not show them. */
  readonly changes?: readonly string[] | undefined;
  /** Why the step failed. */
  readonly error?: string | undefined;
}

/** The views of a resource in one request of the engine. */
export interface Views {
  /** Whether the state is to keep them. Otherwise a report removes those that it has. */
  readonly isKept: boolean;
  /** Those in the state. */
  readonly old: readonly View[];
  /** Shows beside a view what is being done with it, or what it waits for. */
  status(view: Pick<View, "type" | "name">, message: string): void;
  /** Reports how the views change: one step for each, and once in a request, because the engine cannot correct a step. */
  publish(steps: readonly ViewStep[]): Promise<void>;
  /** Reports that all are gone with their resource: one that stayed would make the state invalid. */
  remove(): Promise<void>;
}
