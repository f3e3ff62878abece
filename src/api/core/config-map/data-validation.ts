/** Rules that ConfigMaps and Secrets share: keys are file names, the size is bounded, data may be immutable. */
import {
  type FieldError,
  forbiddenField,
  invalidField,
  tooLong,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { key } from "../../../schema/value/field-path.ts";
import { configMapKey } from "../../meta/validation/names.ts";

/** The maximum size of all values together, in bytes. */
const SIZE_MAX = 1_048_576;

type Data = Readonly<Record<string, string>>;

/** The keys must not be those of `binaryData`. */
export function validateKeys(data: Data | undefined, field: string, binaryData: Data = {}): readonly FieldError[] {
  return validateEach(Object.keys(data ?? {}), (name) => {
    const isRepeated = Object.hasOwn(binaryData, name);
    const problems = [...configMapKey(name), ...(isRepeated ? ["duplicate of key present in binaryData"] : [])];
    return problems.map((problem) => invalidField(key(field, name), name, problem));
  });
}

export function validateSize(bytes: number, field: string): readonly FieldError[] {
  return bytes > SIZE_MAX ? [tooLong(field, SIZE_MAX)] : [];
}

export function textBytes(data: Data | undefined): number {
  return Object.values(data ?? {}).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

/** The size of base64 values after decoding, in bytes. */
export function decodedBytes(data: Data | undefined): number {
  return Object.values(data ?? {}).reduce((sum, text) => sum + Buffer.byteLength(text, "base64"), 0);
}

interface Immutable {
  readonly immutable?: boolean | undefined;
}

/** Rejects changes of the named fields, and of `immutable` itself, once the object is immutable. */
export function validateImmutable<T extends Immutable>(
  next: T,
  previous: T,
  fields: readonly (keyof T & string)[],
): readonly FieldError[] {
  if (previous.immutable !== true) return [];
  const detail = "field is immutable when `immutable` is set";
  return [
    ...(next.immutable === true ? [] : [forbiddenField("immutable", detail)]),
    ...fields
      .filter((field) => !deepEqual(next[field] ?? {}, previous[field] ?? {}))
      .map((f) => forbiddenField(f, detail)),
  ];
}
