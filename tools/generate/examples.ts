// Examples for the reference pages: statements of the programs in examples/, which the tests run.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

/** A statement that shows the use of a type or function. */
export interface Example {
  /** Its text, with the comment before it. */
  readonly code: string;
  /** Path of the program, from the root of the repository. */
  readonly path: string;
}

/** Programs in search order: the one that uses everything comes last. */
function programs(root: string): string[] {
  const names = readdirSync(join(root, "examples")).toSorted(
    (a, b) => Number(a === "everything") - Number(b === "everything") || (a < b ? -1 : 1),
  );
  return names.map((name) => `examples/${name}/index.ts`).filter((path) => existsSync(join(root, path)));
}

/** The parts of `machines` that a statement uses: classes by name, functions by their plain name. */
function usedIn(statement: ts.Statement): Set<string> {
  const used = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (
      (ts.isNewExpression(node) || ts.isCallExpression(node)) &&
      ts.isPropertyAccessExpression(node.expression) &&
      ts.isIdentifier(node.expression.expression) &&
      node.expression.expression.text === "machines"
    )
      used.add(node.expression.name.text.replace(/Output$/, ""));
    ts.forEachChild(node, visit);
  };
  visit(statement);
  return used;
}

/** The first statement that uses each resource and function, by name. */
export function examples(root: string): ReadonlyMap<string, Example> {
  const found = new Map<string, Example>();
  for (const path of programs(root)) {
    const source = ts.createSourceFile(path, readFileSync(join(root, path), "utf8"), ts.ScriptTarget.Latest, true);
    for (const statement of source.statements) {
      // A function shows too much beside the one resource.
      if (ts.isFunctionDeclaration(statement)) continue;
      const code = statement.getFullText(source).trim();
      for (const name of usedIn(statement)) if (!found.has(name)) found.set(name, { code, path });
    }
  }
  return found;
}
