/** The state of decoding one JSON value: the current path, and the errors and unknown members found. */
import { joinPath } from "../value/field-path.ts";

export interface DecodeError {
  /** `spec.containers[0].name`; empty for the value itself. */
  readonly path: string;
  /** As in Go: `json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32`. */
  readonly message: string;
  /** An integer that is out of range, or that would lose digits. Go's converter accepts and changes such. */
  readonly isInteger?: true;
}

/** The API server's limit of reported errors and unknown members per request. */
export const reportedErrorsMax = 100;

export interface DecodeContext {
  readonly steps: (string | number)[];
  /** Indexes of the steps that are keys of maps, which Go's messages omit. */
  readonly keys: number[];
  /** Go names of the structs around the current value, outermost first. */
  readonly structs: string[];
  readonly unknown: string[];
  readonly errors: DecodeError[];
  readonly report: boolean;
  /** The value can contain a `NumberLiteral`. */
  readonly literals: boolean;
  readonly converter: boolean;
  /** Nulls of fields that are not nullable and have no default stay for validation to reject. */
  readonly keepNulls: boolean;
}

/** Returns undefined for null and after an error. */
export type Decoder = (value: unknown, context: DecodeContext) => unknown;

export function reportError(context: DecodeContext, message: string): undefined {
  if (context.errors.length < reportedErrorsMax) context.errors.push({ path: joinPath(context.steps), message });
  return undefined;
}

/** Reports the member at the current path as unknown. */
export function reportUnknown(context: DecodeContext): void {
  if (context.report && context.unknown.length < reportedErrorsMax) context.unknown.push(joinPath(context.steps));
}
