// The service's OpenAPI description, for tests that compare it.
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { contract } from "../../api/index.ts";
import type { Operation } from "../../api/operation.ts";
import { openapi } from "../../service/openapi/openapi.ts";
import type { DescribedOperation, OpenApi } from "../../service/openapi/types.ts";

/** The description of a service that accepts unknown fields. */
export const document = openapi({ strict: false });
/** Every operation of the interface. */
export const rows: readonly Operation[] = Object.values(contract).flatMap((group): Operation[] => Object.values(group));

/** The description of an operation. */
export const operationOf = ({ path, method }: Operation, { paths }: OpenApi = document): DescribedOperation => {
  const found = paths[path]?.[method.toLowerCase()];
  if (!found) throw new Error(`${method} ${path} is not described`);
  return found;
};

/** Compiles the schemas of a document, by their location. */
export function schemasOf(described: OpenApi): (pointer: string) => ValidateFunction {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true });
  addFormats.default(ajv);
  ajv.addSchema(described, "doc");
  return (pointer) => ajv.compile({ $ref: `doc#${pointer}` });
}

const step = (name: string): string =>
  name.replaceAll("~", "~0").replaceAll("/", "~1").replaceAll("{", "%7B").replaceAll("}", "%7D");
/** Compiles a schema of that description. */
export const validator = schemasOf(document);
/** The location of a part of an operation in the description. */
export const at = ({ path, method }: Operation, ...more: string[]): string =>
  ["/paths", step(path), method.toLowerCase(), ...more].join("/");
/** Whether a body is described. */
export const bodyOf = (row: Operation): ValidateFunction =>
  validator(at(row, "requestBody/content/application~1json/schema"));
/** Whether an answer is described. */
export const answerOf = (row: Operation, status: number): ValidateFunction =>
  validator(at(row, `responses/${status}/content/application~1json/schema`));

const answers = new Map<string, ValidateFunction>();

/** Why an answer of an operation is not as described; undefined if it is. */
export function answerProblem(id: string, status: number, text: string): string | undefined {
  const row = rows.find((one) => one.id === id);
  if (!row) return `${id} is no operation`;
  const problem = (why: string): string => `${id} ${status} ${text} ${why}`;
  const { content } = operationOf(row).responses[status] ?? { content: null };
  if (content === null) return problem("has a status that is not described");
  if (!content) return text === "" ? undefined : problem("is not empty");
  const valid = answers.get(`${id} ${status}`) ?? answerOf(row, status);
  answers.set(`${id} ${status}`, valid);
  return valid(JSON.parse(text)) ? undefined : problem(JSON.stringify(valid.errors));
}

/** Checks all answers of a service, for its option `onAnswer`. */
export function checkedAnswers() {
  const succeeded = new Set<string>();
  const undescribed: string[] = [];
  return {
    /** Operations that succeeded. */
    succeeded,
    /** Answers that are not as described. */
    undescribed,
    onAnswer(id: string, status: number, text: string): void {
      if (status < 300) succeeded.add(id);
      undescribed.push(...[answerProblem(id, status, text) ?? []].flat());
    },
  };
}
