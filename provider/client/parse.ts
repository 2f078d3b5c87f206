// Parses an answer: JSON of the documented form, converted to camelCase.
import { z } from "zod";
import { fromWire } from "../../api/case.ts";
import { tidy } from "../../api/schema.ts";
import { isWrongType, validated, valueAtIssue } from "../../api/validated.ts";
import type { Config } from "./config.ts";
import { notJson, unreadable } from "./errorMessages.ts";
import { isRead, type Handler, type Request } from "./handler.ts";
import type { Answer } from "./transport.ts";

/** Parses the answer. A read whose answer is unreadable is sent once more; a change never is (F24). */
export const withParsing =
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
    throw problem(notJson);
  }
  const { value } = tidy(operation.answer, json ?? undefined, "answer");
  // Zod would first compile a function for every object in an answer. That costs a short run more than it saves.
  const valid = validated(operation.answer, value ?? undefined, { jitless: true });
  // Only a wrong type makes an answer unusable. The service may send values that our requests may not have.
  const issue = valid.error?.issues.find((one) => isWrongType(one, valueAtIssue(one, value)));
  if (issue) throw problem(`with an answer of the wrong form (${issue.path.join(".") || "body"}: ${issue.message})`);
  return fromWire(operation.answer, value);
}
