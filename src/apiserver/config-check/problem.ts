/** Problems of configuration files, with their place in the file. */
import type { YamlDocument } from "../../schema/yaml/yaml.ts";

export interface Problem {
  readonly file: string;
  /** Both are counted from one; undefined for a problem of the whole file. */
  readonly line?: number | undefined;
  readonly column?: number | undefined;
  /** `jwt[0].issuer.url`; empty for the whole document. */
  readonly field: string;
  readonly message: string;
  /** What would be right; empty when the message says it. */
  readonly fix: string;
}

/** `file:line:column: field: what is wrong; what would be right`. */
export function formatProblem({ file, line, column, field, message, fix }: Problem): string {
  const where = [file, line, column].filter((part) => part !== undefined).join(":");
  const what = field === "" ? message : `${field}: ${message}`;
  return `${where}: ${what}${fix === "" ? "" : `; ${fix}`}`;
}

/** A file that is checked, or one of its documents. */
export interface Source {
  readonly file: string;
  readonly text: string;
  /** Undefined for a file that is not YAML. */
  readonly document: YamlDocument | undefined;
}

/** A problem at the field, or at the nearest field around it. */
export function problemAt(source: Source, field: string, message: string, fix = ""): Problem {
  return { file: source.file, ...locate(source, field), field, message, fix };
}

function locate({ document }: Source, field: string): Pick<Problem, "line" | "column"> {
  const line = document?.line(field);
  if (line !== undefined) return { line, column: document?.column(field) };
  const around = field.slice(0, Math.max(field.lastIndexOf("."), field.lastIndexOf("["), 0));
  return around === "" ? { line: 1, column: 1 } : locate({ file: "", text: "", document }, around);
}
