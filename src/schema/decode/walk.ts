/** What the readings of JSON values have in common: where they are, and what they found. */
import { joinPath } from "../value/field-path.ts";

export interface DecodeError {
  /** `spec.containers[0].name`; empty for the value itself. */
  readonly path: string;
  /** In Go's words: `json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32`. */
  readonly message: string;
}

/** As many findings as the API server reports for one request. */
export const reportedErrorsMax = 100;

export interface DecodeContext {
  readonly steps: (string | number)[];
  /** Which of the steps are keys of maps: Go does not name these in its messages. */
  readonly keys: number[];
  /** Go names of the structs around the current value, outermost first. */
  readonly structs: string[];
  readonly unknown: string[];
  readonly errors: DecodeError[];
  readonly report: boolean;
}

/** Undefined stands for absent, after null and after an error. */
export type Decoder = (value: unknown, walk: DecodeContext) => unknown;

export function reportError(walk: DecodeContext, message: string): undefined {
  if (walk.errors.length < reportedErrorsMax) walk.errors.push({ path: joinPath(walk.steps), message });
  return undefined;
}

/** Names the member where the walk stands as one that the schema does not know. */
export function reportUnknown(walk: DecodeContext): void {
  if (walk.report && walk.unknown.length < reportedErrorsMax) walk.unknown.push(joinPath(walk.steps));
}
