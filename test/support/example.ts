// A stack with an example of the repository.
import { inject } from "vitest";
import { isThorough } from "./extent.mts";
import type { Runtime } from "./runtimes.ts";
import { Stack, type Binding } from "./stack.ts";
import type { TestService } from "./startService.ts";

/** The example as it is, in a project with the packed packages and with this service. */
export async function exampleStack(
  name: string,
  service: TestService,
  config: Readonly<Record<string, string>> = {},
  { binding, runtime }: { readonly binding?: Binding; readonly runtime?: Runtime } = {},
): Promise<Stack> {
  const stack = new Stack(inject("installed"), name, binding, runtime);
  stack.example(name);
  // The checks compile every example.
  stack.checkTypes(isThorough);
  await stack.init({ "machines:endpoint": service.url, "machines:token": service.token, ...config });
  return stack;
}
