/** The value validations of a structural OpenAPI schema, as plain readonly data. `validate.ts` applies them. */

export type JsonType = "string" | "number" | "integer" | "boolean" | "array" | "object";

export interface Rules {
  /** The value has one of these types. Absent when decoding has checked the type or any type is allowed. */
  readonly types?: readonly JsonType[];
  /** A name in `formats.ts`; unknown formats are not checked. */
  readonly format?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly maximum?: number;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  /** In characters. */
  readonly minLength?: number;
  readonly maxLength?: number;
  /** An RE2 regular expression that matches anywhere in the text. */
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  /** Any JSON values. */
  readonly enum?: readonly unknown[];
  readonly required?: readonly string[];
  /** The object must have no members. */
  readonly closed?: true;
  readonly allOf?: readonly Rules[];
  readonly anyOf?: readonly Rules[];
  readonly oneOf?: readonly Rules[];
  readonly not?: Rules;
  /** Inside `allOf`, `anyOf`, `oneOf` and `not`: further rules for members and items that the schema specifies. */
  readonly properties?: Readonly<Record<string, Rules>>;
  readonly items?: Rules;
  /** `x-kubernetes-validations`, in the order of their errors. */
  readonly validations?: readonly ValidationRule[];
}

/** One rule in the Common Expression Language (CEL). */
export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: ValidationReason;
  /** The field of the error, relative to the value: `.spec.size`, `.labels['x']`. */
  readonly fieldPath?: string;
  /** The rule is also evaluated without an old value: `oldSelf` is an optional. */
  readonly optionalOldSelf?: boolean;
}

export type ValidationReason =
  | "FieldValueInvalid"
  | "FieldValueForbidden"
  | "FieldValueRequired"
  | "FieldValueDuplicate";
