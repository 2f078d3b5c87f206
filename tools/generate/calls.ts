// The operations of the interface that a source file's code calls, directly or through other declarations.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import ts from "typescript";

/** A top-level declaration. */
interface Declaration {
  /** Operations that it calls by name. */
  readonly calls: readonly string[];
  /** Names that it uses. */
  readonly uses: ReadonlySet<string>;
}

interface Source {
  readonly declarations: ReadonlyMap<string, Declaration>;
  /** The origin of an imported name: path and name there. */
  readonly imports: ReadonlyMap<string, { readonly path: string; readonly name: string }>;
}

/** Operations that a text calls by name: `api.machines.stop(`, `api.machines[on ? "cordon" : "uncordon"](`. */
export function callsIn(text: string): string[] {
  const direct = [...text.matchAll(/\b(\w+)\s*\.(\w+)\(/g)].map(([, group, method]) => `${group}.${method}`);
  const chosen = [...text.matchAll(/\.(\w+)\[([^\]]*)\]\(/g)].flatMap(([, group, choice = ""]) =>
    [...choice.matchAll(/"(\w+)"/g)].map(([, method]) => `${group}.${method}`),
  );
  return [...direct, ...chosen];
}

const sources = new Map<string, Source>();

function sourceOf(path: string): Source {
  let source = sources.get(path);
  if (!source) sources.set(path, (source = parse(path)));
  return source;
}

function parse(path: string): Source {
  const declarations = new Map<string, Declaration>();
  const imports = new Map<string, { path: string; name: string }>();
  if (!existsSync(path)) return { declarations, imports };
  const file = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
  const declare = (name: string, node: ts.Node): void => {
    const uses = new Set<string>();
    const visit = (inner: ts.Node): void => {
      if (ts.isIdentifier(inner)) uses.add(inner.text);
      ts.forEachChild(inner, visit);
    };
    visit(node);
    declarations.set(name, { calls: callsIn(node.getText(file)), uses });
  };
  for (const statement of file.statements) {
    if (ts.isImportDeclaration(statement) && ts.isStringLiteral(statement.moduleSpecifier)) {
      const from = statement.moduleSpecifier.text;
      const bindings = statement.importClause?.namedBindings;
      if (!from.startsWith(".") || !bindings || !ts.isNamedImports(bindings)) continue;
      for (const { name, propertyName } of bindings.elements)
        imports.set(name.text, { path: normalize(join(dirname(path), from)), name: (propertyName ?? name).text });
    } else if (ts.isVariableStatement(statement)) {
      for (const one of statement.declarationList.declarations) declare(one.name.getText(file), one);
    } else if ((ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement)) && statement.name)
      declare(statement.name.text, statement);
  }
  return { declarations, imports };
}

/** Whether a file exists and declares a name. */
export const declares = (path: string, name: string): boolean => sourceOf(path).declarations.has(name);

/** Operations that a file's declaration of a name calls, directly or indirectly. */
export function callsFrom(path: string, name: string, seen: Set<string> = new Set()): Set<string> {
  const key = `${path} ${name}`;
  if (seen.has(key)) return new Set();
  seen.add(key);
  const { declarations, imports } = sourceOf(path);
  const declaration = declarations.get(name);
  if (!declaration) return new Set();
  const inner = [...declaration.uses].flatMap((used) => {
    const from = imports.get(used);
    if (from) return [...callsFrom(from.path, from.name, seen)];
    return used === name ? [] : [...callsFrom(path, used, seen)];
  });
  return new Set([...declaration.calls, ...inner]);
}
