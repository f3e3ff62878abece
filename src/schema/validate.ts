/**
 * What the schema alone can say against a value: text outside a closed set. Types have been checked by `decode`, and
 * rules that look at more than one field live with the kinds.
 */
import { type FieldError, notSupported } from "./field-error.ts";
import { child, index, key } from "./field-path.ts";
import { membersOf } from "./members.ts";
import type { ObjectSchema, Schema } from "./schema.ts";

export function validate(schema: Schema, value: unknown): FieldError[] {
  const errors: FieldError[] = [];
  validatorOf(schema)?.check(value, "", errors);
  return errors;
}

interface Validator {
  check(value: unknown, path: string, errors: FieldError[]): void;
}

/** Null for schemas that say nothing. */
const validators = new WeakMap<Schema, Validator | null>();

function validatorOf(schema: Schema): Validator | null {
  let validator = validators.get(schema);
  if (validator === undefined) {
    validator = hasRules(schema, new Set()) ? compile(schema) : null;
    validators.set(schema, validator);
  }
  return validator;
}

function hasRules(schema: Schema, seen: Set<Schema>): boolean {
  if (seen.has(schema)) return false;
  seen.add(schema);
  switch (schema.type) {
    case "string":
      return schema.values !== undefined && schema.judgedByKind !== true;
    case "object":
      return membersOf(schema).some((member) => hasRules(member.schema, seen));
    case "list":
      return hasRules(schema.items, seen);
    case "map":
      return hasRules(schema.values, seen);
    default:
      return false;
  }
}

function compile(schema: Schema): Validator | null {
  switch (schema.type) {
    case "string": {
      const allowed = new Set(schema.values);
      return {
        check(value, path, errors) {
          // Whether a member may be empty is the kind's to say.
          if (typeof value === "string" && value !== "" && !allowed.has(value)) {
            errors.push(notSupported(path, value, [...allowed].sort()));
          }
        },
      };
    }
    case "object":
      return objectValidator(schema);
    case "list":
      return {
        check(value, path, errors) {
          const items = validatorOf(schema.items);
          for (const [place, item] of (value as readonly unknown[]).entries()) {
            items?.check(item, index(path, place), errors);
          }
        },
      };
    case "map":
      return {
        check(value, path, errors) {
          const values = validatorOf(schema.values);
          for (const [name, member] of Object.entries(value as object)) values?.check(member, key(path, name), errors);
        },
      };
    default:
      return null;
  }
}

function objectValidator(schema: ObjectSchema): Validator {
  const slots = membersOf(schema).filter((member) => hasRules(member.schema, new Set()));
  return {
    check(value, path, errors) {
      const members = value as Readonly<Record<string, unknown>>;
      for (const { name, schema: target } of slots) {
        const member = members[name];
        if (member !== undefined) validatorOf(target)?.check(member, child(path, name), errors);
      }
    },
  };
}
