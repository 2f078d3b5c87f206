// What identifies a container engine among all engines, also after it was started again.
import { randomBytes } from "node:crypto";
import { allowing, EngineError, reasonOf, type Engine } from "./engine.ts";

const marker = "machines-engine";
const label = "machines-service.engine";

/**
 * The id of an engine. The one that it says is of no use: computers that were copied from one image say the same, and Podman says another
 * one each time. But Docker gives a random id to its network `none` when it creates its storage, and no one can remove that network. Other
 * engines get a volume whose label is the id.
 */
export async function engineIdOf({ docker }: Pick<Engine, "docker">): Promise<string> {
  try {
    const none = (await allowing([404], docker.getNetwork("none").inspect())) as NetworkInfo | undefined;
    if (none?.Driver === "null" && none.Id) return none.Id;
    // An engine that has it already keeps its label.
    await docker.createVolume({ Name: marker, Labels: { [label]: randomBytes(32).toString("hex") } });
    const marked = (await docker.getVolume(marker).inspect()).Labels?.[label];
    if (marked !== undefined) return marked;
  } catch (error) {
    throw new EngineError(`the container engine cannot be identified: ${reasonOf(error)}`);
  }
  throw new EngineError(
    `the container engine cannot be identified: its volume ${marker} has no label ${label}; remove that volume`,
  );
}

interface NetworkInfo {
  readonly Id?: string;
  readonly Driver?: string;
}
