// Answers to the engine: values with their secrets marked, differences and failures.
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import type * as rpc from "@pulumi/pulumi/proto/provider_pb.js";
import type { Change } from "../core/diff.ts";
import { CONTEXT, contextOf, type Resource, type Values } from "../core/resource.ts";
import { pathText } from "../core/values.ts";
import { encode, holdsSecretAt, mergedMarks, withSecrets, type Decoded, type Marks } from "./marshal.ts";

/** Inputs in the engine's state, without the additions to their context. A preview's result has no owner either. */
export function encodedInputs(resource: Resource, inputs: Values, marks: Marks | undefined): ReturnType<typeof encode> {
  const { owner: _, ...context } = contextOf(inputs);
  return encoded(resource, { ...inputs, [CONTEXT]: context }, marks);
}

/**
 * A state as the engine keeps it. For types with guarded data, or with marks in the service, it names the owner, which reveals an alias
 * later (R11, R12).
 */
export function encoded(resource: Resource, values: Values, marks: Marks | undefined): ReturnType<typeof encode> {
  const { [CONTEXT]: _, ...rest } = values;
  const { owner, name: _name, ...others } = contextOf(values);
  const isNamed = owner !== undefined && (resource.losesData !== undefined || resource.marksOwner === true);
  const context = isNamed ? { ...others, owner } : others;
  const repeating = Object.entries(resource.derivedFrom).filter(([, paths]) =>
    [paths ?? []].flat().some((path) => holdsSecretAt(marks, path.split("."))),
  );
  return encode(
    Object.keys(context).length > 0 ? { ...rest, [CONTEXT]: context } : rest,
    (name) => {
      const fields = [resource.inputFields, resource.outputFields].map((known) =>
        Object.hasOwn(known, name) ? known[name] : undefined,
      );
      return fields.filter((field) => field !== undefined);
    },
    withSecrets(
      marks,
      repeating.map(([output]) => output),
    ),
  );
}

/** The properties of a resource. */
export const fieldsIn = ({ inputFields, outputFields }: Resource) => ({ ...outputFields, ...inputFields });

/** The marks of the program's values, and of the values that it leaves unchanged. */
export function marksOver(olds: Decoded, news: Decoded): Marks | undefined {
  if (!olds.marks) return news.marks;
  const omitted = [...olds.marks.within].filter(([name]) => news.values[String(name)] === undefined);
  return mergedMarks(news.marks, { ...olds.marks, within: new Map(omitted) });
}

/** The engine prints the value of a named property, even of a secret: the path is part of the reason. */
export function failure(reason: string): rpc.CheckFailure {
  const found = new proto.CheckFailure();
  found.setReason(reason);
  return found;
}

/** The differences, as the engine shows them. */
export function diffResponse(
  changes: readonly Pick<Change, "path" | "kind" | "replaces">[],
  deleteBeforeReplace: boolean,
): rpc.DiffResponse {
  const { Kind } = proto.PropertyDiff;
  const kinds = {
    add: [Kind.ADD, Kind.ADD_REPLACE],
    update: [Kind.UPDATE, Kind.UPDATE_REPLACE],
    delete: [Kind.DELETE, Kind.DELETE_REPLACE],
  } as const;
  const response = new proto.DiffResponse();
  const top = (of: typeof changes): string[] => [...new Set(of.map(({ path }) => String(path[0])))];
  const replaces = top(changes.filter((change) => change.replaces));
  const { DIFF_SOME, DIFF_NONE } = proto.DiffResponse.DiffChanges;
  response.setChanges(changes.length > 0 ? DIFF_SOME : DIFF_NONE);
  response.setDiffsList(top(changes));
  response.setReplacesList(replaces);
  response.setDeletebeforereplace(deleteBeforeReplace && changes.length > 0);
  response.setHasdetaileddiff(true);
  for (const { path, kind, replaces: asks } of changes) {
    const detail = new proto.PropertyDiff();
    detail.setKind(kinds[kind][asks ? 1 : 0]);
    detail.setInputdiff(true);
    response.getDetaileddiffMap().set(pathText(path), detail);
  }
  return response;
}
