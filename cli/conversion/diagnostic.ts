// Messages of the converter, in the form in which Pulumi prints them.
import { oneLine } from "../../api/printable.ts";
import hcl from "@pulumi/pulumi/proto/codegen/hcl_pb.js";
import type { Diagnostic, DiagnosticSeverity } from "@pulumi/pulumi/proto/codegen/hcl_pb.js";

/** A message about a place, of which Pulumi prints all three. */
export function diagnostic(
  severity: DiagnosticSeverity,
  [name, line, column = 1]: readonly [name: string, line: number, column?: number],
  summary: string,
  detail: string,
): Diagnostic {
  const at = new hcl.Pos().setLine(line).setColumn(column);
  const range = new hcl.Range().setFilename(name).setStart(at).setEnd(at);
  return new hcl.Diagnostic()
    .setSeverity(severity)
    .setSummary(oneLine(summary))
    .setDetail(oneLine(detail))
    .setSubject(range);
}
