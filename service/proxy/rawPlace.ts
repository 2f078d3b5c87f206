// Raw ports that other computers reach by a proxy of its own.

/** A raw port of an App, and where other computers reach it. */
export interface RawPlace {
  /** Name of the App. */
  readonly app: string;
  /** The public port in its configuration. */
  readonly port: number;
  /** The port at the public addresses. */
  readonly at: number;
}
