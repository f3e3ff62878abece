/**
 * What values of a schema must satisfy beyond their form: the value validations of a structural OpenAPI schema, as
 * plain readonly data. `validate.ts` reads them; nothing changes a value for their sake.
 */

export type JsonType = "string" | "number" | "integer" | "boolean" | "array" | "object";

export interface Rules {
  /** Any of these; absent, decoding has checked the type, or any type will do. */
  readonly types?: readonly JsonType[];
  /** A name of `formats.ts`; unknown ones are not checked. */
  readonly format?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly maximum?: number;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  /** In characters. */
  readonly minLength?: number;
  readonly maxLength?: number;
  /** A regular expression of RE2, found anywhere in the text. */
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  /** Any JSON values. */
  readonly enum?: readonly unknown[];
  readonly required?: readonly string[];
  /** No members at all. */
  readonly closed?: true;
  readonly allOf?: readonly Rules[];
  readonly anyOf?: readonly Rules[];
  readonly oneOf?: readonly Rules[];
  readonly not?: Rules;
  /** Inside `allOf`, `anyOf`, `oneOf` and `not`: rules for members and items that the schema around them describes. */
  readonly properties?: Readonly<Record<string, Rules>>;
  readonly items?: Rules;
  /** `x-kubernetes-validations`, in the order they are reported. */
  readonly validations?: readonly ValidationRule[];
}

/** One rule in the Common Expression Language. */
export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: ValidationReason;
  /** Of the field at fault, relative to the value: `.spec.size`, `.labels['x']`. */
  readonly fieldPath?: string;
  /** The rule is evaluated without an old value too: `oldSelf` is then an optional. */
  readonly optionalOldSelf?: boolean;
}

export type ValidationReason =
  | "FieldValueInvalid"
  | "FieldValueForbidden"
  | "FieldValueRequired"
  | "FieldValueDuplicate";
