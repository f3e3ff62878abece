/**
 * The errors of the loaders, which the programs print when they start, as problems with their place. A loader's error
 * is a sentence: `Cannot load FILE:LINE: FIELD: WHY; FILE:LINE: FIELD: WHY`.
 */
import { resolve } from "node:path";
import type { ObjectSchema } from "../../schema/schema.ts";
import { splitPath } from "../../schema/value/field-path.ts";
import { type Problem, problemAt, type Source } from "./problem.ts";
import { suggestField } from "./structure.ts";

/** Sentences before the first problem. */
const LEADS = new RegExp(
  `^(?:${[
    "Cannot (?:load|read|use)",
    "error while (?:parsing|loading) file:",
    'error decoding \\w+ (?:provider )?configuration file "[^"]*":',
    "loading audit policy file:",
    "failed to read policy file:",
  ].join("|")}) *`,
);
/** `jwt[0].issuer.url` */
const PATH = "[A-Za-z][\\w-]*(?:\\[[^\\]]*\\])*(?:\\.[A-Za-z_][\\w-]*(?:\\[[^\\]]*\\])*)*";
const FIELD = new RegExp(`^(?:field )?(${PATH})(?:: (?=\\S)| (?=has |must |may |is |cannot |needs ))`);

/** `schema`: for suggestions. */
export function problemsOf(source: Source, error: unknown, schema?: ObjectSchema): readonly Problem[] {
  const { file } = source;
  // Some loaders name the absolute path.
  let text = (error instanceof Error ? error.message : String(error)).replaceAll(resolve(file), file);
  for (let lead = LEADS.exec(text); lead !== null && lead[0] !== ""; lead = LEADS.exec(text)) {
    text = text.slice(lead[0].length);
  }
  text = text.replace(`: from file ${file}`, "");
  return splitProblems(text, file).map((part) => toProblem(source, part, schema));
}

/** At the places where another problem of the same file begins, and within Kubernetes' `[a, b]`. */
function splitProblems(text: string, file: string): readonly string[] {
  const parts = text.split(`; ${file}`).map((part, index) => (index === 0 ? part : `${file}${part}`));
  if (parts.length > 1) return parts;
  const list = /^\[(.*)\]$/s.exec(text)?.[1];
  return list === undefined
    ? [text]
    : list.split(/, (?=[a-z][\w.[\]]*: (?:Invalid|Required|Unsupported|Duplicate|Forbidden))/);
}

function toProblem(source: Source, part: string, schema: ObjectSchema | undefined): Problem {
  const { file } = source;
  let text = part;
  let line: number | undefined;
  if (text.startsWith(file)) {
    const [whole, number] = /^:?(\d+)?:?(?: for \w+)?:? */.exec(text.slice(file.length)) ?? [""];
    line = number === undefined ? undefined : Number(number);
    text = text.slice(file.length + whole.length);
  }
  const atLine = /(?:^|: )(?:yaml: )?line (\d+)(?:, column (\d+))?:? */.exec(text);
  if (line === undefined && atLine !== null) line = Number(atLine[1]);
  const [whole = "", field = ""] = isField(source, FIELD.exec(text)) ?? [];
  const { message, fix } = splitFix(text.slice(whole.length));
  const suggestion = message === "unknown field" && fix === "" && schema !== undefined;
  const problem = problemAt(source, field, message, suggestion ? suggestField(schema, field) : fix);
  if (line === undefined || (problem.line === line && field !== "")) return problem;
  // A path within a part of the document, which the loader knows the line of.
  const row = source.text.split("\n")[line - 1] ?? "";
  const name = String(splitPath(field).at(-1) ?? "");
  const column = name === "" ? row.length - row.trimStart().length : row.indexOf(name);
  return { ...problem, line, column: Math.max(column, 0) + 1 };
}

/** A word before a colon is a field only if the document has it, or a part of its path. */
function isField({ document }: Source, match: RegExpExecArray | null): RegExpExecArray | undefined {
  const [first = ""] = match?.[1]?.split(/[.[]/) ?? [];
  const value = document?.value;
  const names = typeof value === "object" && value !== null ? Object.keys(value) : [];
  const isPath = match?.[1]?.includes(".") === true || match?.[1]?.includes("[") === true;
  const isError = /^(?:Invalid|Required|Unsupported|Duplicate|Forbidden|Too)/.test(
    match === null ? "" : match.input.slice(match[0].length),
  );
  return match !== null && (names.includes(first) || isPath || isError) ? match : undefined;
}

/** What is wrong, and what would be right where the sentence says both. */
function splitFix(text: string): Pick<Problem, "message" | "fix"> {
  const [, wrong = "", right = ""] = /^(.*?)(?:: |; )(supported values: .*|did you mean .*\?)$/.exec(text) ?? [];
  if (right !== "") return { message: wrong, fix: right };
  const [, expected, found] = /^(expected .*), (found .*)$/.exec(text) ?? [];
  if (expected !== undefined && found !== undefined) return { message: found, fix: expected };
  if (text === "Required value") return { message: text, fix: "set it" };
  if (/^Duplicate value/.test(text)) return { message: text, fix: "each may occur once" };
  return { message: text, fix: "" };
}
