// Reads an answer: JSON of the form that the operation documents, in camelCase.
import { z } from "zod";
import { fromWire } from "../../api/case.ts";
import { tidy } from "../../api/schema.ts";
import type { Config } from "./config.ts";
import { unreadable } from "./errorMessages.ts";
import { isRead, type Handler, type Request } from "./handler.ts";
import type { Answer } from "./transport.ts";

/** Parses the answer. A read whose answer is unreadable is sent once more; a change never is (F24). */
export const parsed =
  (config: Config, next: Handler<Answer>): Handler<unknown> =>
  async (request) => {
    const answer = await next(request);
    try {
      return parse(config, request, answer);
    } catch (error) {
      if (!isRead(request) || config.retries === 0) throw error;
      return parse(config, request, await next(request));
    }
  };

function parse(config: Config, { operation, url, token }: Request, answer: Answer): unknown {
  if (!operation.answer) return undefined;
  const problem = (what: string) => unreadable(operation, url, answer, what, { ...config, token });
  let json: unknown;
  try {
    json = answer.text === "" ? undefined : JSON.parse(answer.text);
  } catch {
    // Plain actions answer whatever they like (docs/interface.md#starting-and-stopping); a page is no answer of the
    // service.
    if (operation.answer instanceof z.ZodOptional && !/^\s*</.test(answer.text)) return undefined;
    throw problem("with something that is not JSON");
  }
  const { value } = tidy(operation.answer, json ?? undefined);
  // Zod would first compile a function for every object in an answer. That costs a short run more than it saves.
  const valid = operation.answer.safeParse(value ?? undefined, { jitless: true });
  // Only a wrong type makes an answer unusable. The service may send values that our requests may not have.
  const issue = valid.error?.issues.find(({ code }) => code === "invalid_type" || code === "invalid_union");
  if (issue)
    throw problem(
      `with an answer of the wrong form (${issue.path.join(".") || "body"}: ${issue.message || "invalid"})`,
    );
  return fromWire(operation.answer, value);
}
