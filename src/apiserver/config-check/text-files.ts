/** Configuration files that are not YAML documents: static tokens and ABAC policies. */
import { parseTokenFile } from "../../auth/authn/token/token-file.ts";
import { parseAbacFile } from "../../auth/authz/abac/policy-file.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import type { Problem } from "./problem.ts";

/** One policy a line, as JSON. */
export function isAbacFile(text: string): boolean {
  const first = text.split("\n").find((line) => line.trim() !== "" && !line.trim().startsWith("#")) ?? "";
  if (!first.trimStart().startsWith("{")) return false;
  try {
    const value: unknown = JSON.parse(first);
    if (!isPlainObject(value)) return false;
    const { apiVersion, kind } = value;
    if (typeof apiVersion === "string") return apiVersion.startsWith("abac.");
    return kind === undefined || kind === "Policy";
  } catch {
    // A line that is cut off; a document of several lines begins with a brace alone.
    return first.includes('"apiVersion":"abac.') || first.includes('"apiVersion": "abac.');
  }
}

/** Every line, so that each mistake is shown. */
export function checkAbacFile(file: string, text: string): readonly Problem[] {
  return text.split("\n").flatMap((line, index) => {
    const problem = (message: string, fix: string): Problem => ({
      ...{ file, line: index + 1, column: line.length - line.trimStart().length + 1, field: "", message, fix },
    });
    try {
      const { warnings } = parseAbacFile("", line);
      return warnings.flatMap((text) => {
        const field = /unknown field "([^"]*)"/.exec(text)?.[1];
        if (field === undefined) return [];
        return [
          {
            ...problem(
              "unknown field",
              "the fields are user, group, readonly, apiGroup, resource, namespace, nonResourcePath",
            ),
            field,
          },
        ];
      });
    } catch (error) {
      const lead = `error reading policy file , line 1: ${line.trim().slice(0, QUOTED_MAX)}: `;
      return [problem((error as Error).message.slice(lead.length), EXAMPLE)];
    }
  });
}

/** Characters of a line in the message of the loader. */
const QUOTED_MAX = 200;
const EXAMPLE =
  'expected {"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "bob", …}}';

/** Static tokens: comma-separated values, one user a line. */
export function checkTokenFile(file: string, text: string): readonly Problem[] {
  try {
    parseTokenFile(file, text);
    return [];
  } catch (error) {
    const { message } = error as Error;
    const line = Number(/:(\d+): /.exec(message.slice(message.indexOf(file) + file.length - 1))?.[1] ?? 1);
    const why = message.slice(message.indexOf(`:${line}: `) + `:${line}: `.length);
    const row = text.split(/\r?\n/)[line - 1] ?? "";
    const problem = (what: string): Problem => ({
      ...{ file, line, column: 1, field: "", message: what, fix: 'expected token,user,uid,"group1,group2"' },
    });
    // The loader stops at the first mistake; the lines after it are checked without it.
    const rest = text
      .split("\n")
      .with(line - 1, "")
      .join("\n");
    return [problem(why.replace(/^expected .*, found /, "found ")), ...(row === "" ? [] : checkTokenFile(file, rest))];
  }
}
