/** Rules that the kinds of `resource.k8s.io` share. */
import {
  duplicateField,
  type FieldError,
  invalidField,
  requiredField,
  tooLong,
  tooMany,
  validateEach,
} from "../../schema/validation/field-error.ts";
import { index } from "../../schema/value/field-path.ts";
import { validateDriverName } from "../core/volume/source-validation.ts";
import { dns1123Label, dns1123Subdomain, validateName } from "../meta/validation/names.ts";

const POOL_NAME_MAX = 253;
const ID_MAX = 32;
const DOMAIN_MAX = 63;
/** Keys that are longer are shown shortened in paths. */
export const QUALIFIED_NAME_MAX = DOMAIN_MAX + 1 + ID_MAX;

type ValidateItem<T> = (item: T, path: string) => readonly FieldError[];

/** Each item, then the number of items; a negative `most` sets no limit. */
export function validateList<T>(
  items: readonly T[] | undefined,
  most: number,
  path: string,
  validate: ValidateItem<T>,
): readonly FieldError[] {
  const all = items ?? [];
  return [
    ...validateEach(all, (item, i) => validate(item, index(path, i))),
    ...(most >= 0 && all.length > most ? [tooMany(path, all.length, most)] : []),
  ];
}

/** The same for items with unique keys; `show` returns what errors show of a key. */
export function validateSet<T>(
  items: readonly T[] | undefined,
  most: number,
  path: string,
  validate: ValidateItem<T>,
  keyOf: (item: T) => string,
  member = "",
  show: (key: string) => unknown = (key) => key,
): readonly FieldError[] {
  const seen = new Set<string>();
  return [
    ...validateList(items, most, path, validate),
    ...validateEach(items ?? [], (item, i) => {
      const key = keyOf(item);
      const at = member === "" ? index(path, i) : `${index(path, i)}.${member}`;
      return seen.size === seen.add(key).size ? [duplicateField(at, show(key))] : [];
    }),
  ];
}

/** Keys and values; keys that are longer than `keyMax` are shown shortened. */
export function validateMap<T>(
  members: Readonly<Record<string, T>> | undefined,
  path: string,
  keyMax: number,
  validateKey: ValidateItem<string>,
  validateValue: ValidateItem<T>,
): readonly FieldError[] {
  return validateEach(Object.entries(members ?? {}), ([key, value]) => {
    const at = `${path}[${shorten(key, keyMax)}]`;
    return [...validateKey(key, at), ...validateValue(value, at)];
  });
}

function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const kept = most - 3;
  return `${text.slice(0, Math.floor((kept + 1) / 2))}...${text.slice(text.length - Math.floor(kept / 2))}`;
}

export function validatePoolName(name: string, path: string): readonly FieldError[] {
  if (name === "") return [requiredField(path)];
  return [
    ...(Buffer.byteLength(name) > POOL_NAME_MAX ? [tooLong(path, POOL_NAME_MAX)] : []),
    ...validateEach(name.split("/"), (part) => validateName(path, part, dns1123Subdomain)),
  ];
}

export const validateLabelName: ValidateItem<string> = (name, path) => validateName(path, name, dns1123Label);

/** `name` or `domain/name`. */
export function validateQualifiedName(name: string, path: string): readonly FieldError[] {
  if (name === "") return [requiredField(path, "name required")];
  const parts = name.split("/");
  const [first = "", second = ""] = parts;
  if (parts.length === 1) return validateIdentifier(first, path);
  if (parts.length > 2) return [];
  return [
    ...(first === "" ? [requiredField(path, "the domain must not be empty")] : validateDriverName(first, path)),
    ...(second === "" ? [requiredField(path, "the name must not be empty")] : validateIdentifier(second, path)),
  ];
}

export function validateFullyQualifiedName(name: string, path: string): readonly FieldError[] {
  return [
    ...validateQualifiedName(name, path),
    ...(name !== "" && !name.includes("/") ? [invalidField(path, name, "must include a domain")] : []),
  ];
}

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;
const IDENTIFIER_MESSAGE =
  "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";

function validateIdentifier(id: string, path: string): readonly FieldError[] {
  return [
    ...(Buffer.byteLength(id) > ID_MAX ? [tooLong(path, ID_MAX)] : []),
    ...(IDENTIFIER.test(id)
      ? []
      : [{ type: "FieldValueTypeInvalid" as const, field: path, badValue: id, detail: IDENTIFIER_MESSAGE }]),
  ];
}

/** An object with parameters of a driver; `isStored` ones may have any size. */
export function validateParameters(
  value: unknown,
  path: string,
  isStored: boolean,
  bytesMax: number,
): readonly FieldError[] {
  if (value === undefined || value === null) return [requiredField(path)];
  if (!isStored && Buffer.byteLength(JSON.stringify(value)) > bytesMax) return [tooLong(path, bytesMax)];
  const isObject = typeof value === "object" && !Array.isArray(value);
  return isObject ? [] : [invalidField(path, "<value omitted>", "must be a valid JSON object")];
}
