// A function as programs call it, in each binding.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { invoke } from "../../provider/dynamic/index.ts";
import type { Values } from "../../provider/core/resource.ts";
import { startPlugin } from "./plugin.ts";
import { clearText, fromStruct, revealed, toStruct, Unknown } from "./properties.ts";
import type { TestService } from "./startService.ts";

/** The result of a call. */
export interface Answered {
  readonly answer: Values;
  /** Whether any part is marked secret. */
  readonly isSecret: boolean;
  readonly isKnown: boolean;
}

/** Functions of one configured provider. */
export interface Calling {
  call(name: string, args?: Values, options?: { isPreview?: boolean }): Promise<Answered>;
  close(): Promise<void>;
}

type Around = Pick<TestService, "url" | "token">;

/** In a program, with the dynamic package. */
function inProgram({ url, token }: Around): Promise<Calling> {
  const config: Record<string, string> = { endpoint: url, token };
  return Promise.resolve({
    call: (name, args = {}, { isPreview = false } = {}) =>
      invoke(name, args, (key) => config[key], { isPreview, say: () => undefined }),
    close: () => Promise.resolve(),
  });
}

/** Through the plugin, as the engine calls it. */
async function throughPlugin({ url, token }: Around): Promise<Calling> {
  const plugin = await startPlugin();
  await plugin.client.configure(new proto.ConfigureRequest().setArgs(toStruct({ endpoint: url, token })));
  return {
    async call(name, args = {}, { isPreview = false } = {}) {
      const request = new proto.InvokeRequest().setTok(`machines:index:${name}`).setArgs(toStruct(args));
      const response = await plugin.client.invoke(request.setPreview(isPreview));
      const returned = response.getReturn();
      const marked = returned ? fromStruct(returned, { unknowns: isPreview }) : {};
      const isKnown = !Object.values(marked).some((value) => value instanceof Unknown);
      const isSecret = clearText(marked) !== JSON.stringify(revealed(marked));
      return { answer: isKnown ? (revealed(marked) as Values) : {}, isSecret, isKnown };
    },
    close: () => plugin.close(),
  };
}

/** The bindings, by name. */
export const callings = [
  { name: "dynamic", start: inProgram },
  { name: "plugin", start: throughPlugin },
] as const;
