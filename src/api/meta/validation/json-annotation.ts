/** Annotations whose value is the JSON of an API type. */
import { Buffer } from "node:buffer";
import { decode } from "../../../schema/decode/decode.ts";
import { parseJson } from "../../../schema/json/parse.ts";
import type { Infer, Schema } from "../../../schema/schema.ts";

/** The value, undefined for `null`; or `problem`, with the text of Go's decoder where there is one. */
export type DecodedAnnotation<T> = { readonly value: T | undefined } | { readonly problem: string };

export function decodeAnnotation<S extends Schema>(schema: S, text: string): DecodedAnnotation<Infer<S>> {
  try {
    const { value } = parseJson(Buffer.from(text));
    if (value === null) return { value: undefined };
    const { value: decoded, errors } = decode(schema, value, { unknownFields: "drop" });
    const [first] = errors;
    return first === undefined ? { value: decoded } : { problem: first.message };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { problem: problem.replace(/ \(line \d+, column \d+\)$/, "") };
  }
}

/** The same for a value that Kubernetes decodes into an internal type: `core.Taint`, with the names of Go's fields. */
export function internalTypeProblem(problem: string): string {
  return problem
    .replace(/(?<= of type (?:\[\])?)v1(?=\.\w+$)/, "core")
    .replace(/(?<=Go struct field \w+\.)[a-z]/, (letter) => letter.toUpperCase());
}
