// Reads the queries and bodies of routes that are not part of the interface.
import type { z } from "zod";
import { validated } from "../../api/validated.ts";
import { refuse } from "../refusal.ts";
import { problemText } from "./validate.ts";

/** Parses a query or a body. @throws Refusal 400 with the field, what it got and what is allowed */
export function read<S extends z.ZodType>(schema: S, value: unknown): z.infer<S> {
  const { success, data, error } = validated(schema, value);
  if (success) return data;
  const [issue] = error.issues;
  if (issue?.code === "unrecognized_keys") throw refuse(400, `unknown ${[...issue.path, issue.keys[0]].join(".")}`);
  throw refuse(400, issue ? problemText(schema, issue, value) : "invalid request");
}
