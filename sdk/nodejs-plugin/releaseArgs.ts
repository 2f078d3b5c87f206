// *** Copied by `npm run generate` from sdk/nodejs/releaseArgs.ts: do not edit. ***
// The arguments of a Release.
import type * as pulumi from "@pulumi/pulumi";
import type { ReleaseRecord } from "./releaseRules";

/** The service to read the previous stack's Machines from, if this stack's own token cannot read them. */
export interface ReleaseSource {
  /** Base URL of its service; this stack's when left out. */
  readonly endpoint?: pulumi.Input<string> | undefined;
  /** A token that may read its Machines; it is kept secret. One that the preview does not know yet is used in the update. */
  readonly token: pulumi.Input<string>;
}

/** Arguments of a Release: either `image`, in the first stack, or `from`, in the stacks that adopt it. */
export interface ReleaseArgs {
  /**
   * Image of a release that begins in this stack. Its digest is the one that the service reports for the Machines that
   * run it.
   */
  image?: pulumi.Input<string> | undefined;
  /** Configuration of a release that begins in this stack, as texts by name, for example environment variables. The next stacks get the same. */
  settings?: pulumi.Input<{ [name: string]: pulumi.Input<string> }> | undefined;
  /**
   * Release of the previous stack: `new pulumi.StackReference(stack).requireOutput("release")`. All its Machines must
   * be started there on its digest, with their checks passing. Otherwise it is refused, in the preview already, with
   * the reason.
   */
  from?: pulumi.Input<ReleaseRecord> | undefined;
  /**
   * Release that this stack keeps, whatever the previous stack runs meanwhile: with it, `from` is not read. While its
   * promotion is `pending`, it has to equal `from` and be healthy there.
   */
  pinned?: pulumi.Input<ReleaseRecord> | undefined;
  /** The service to read the Machines of `from` from. When left out, it is this stack's service, with its token. */
  source?: ReleaseSource | undefined;
}
