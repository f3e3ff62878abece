import type { Schema } from "../../../schema/schema.ts";
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { type FieldError, formatGoMap, invalidField, unquoted } from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import type { LabelSelector } from "../label-selector.ts";

/** Rejects a change of the field. With a schema, values of equal meaning are equal. */
export function validateImmutableField(
  next: unknown,
  previous: unknown,
  field: string,
  schema?: Schema,
): readonly FieldError[] {
  const same = schema === undefined ? deepEqual(next, previous) : semanticEqual(schema, next, previous);
  return same ? [] : [invalidField(field, next, "field is immutable")];
}

/** Rejects a change of a controller's selector; the message has the selector as Go prints it. */
export function validateImmutableSelector(
  next: LabelSelector | undefined,
  previous: LabelSelector | undefined,
): readonly FieldError[] {
  if (deepEqual(next, previous)) return [];
  return [invalidField("spec.selector", next === undefined ? "null" : goSelector(next), "field is immutable")];
}

function goSelector({ matchLabels, matchExpressions }: LabelSelector): unknown {
  const type = "v1.LabelSelectorRequirement";
  const items = matchExpressions?.map(({ key, operator, values }) => {
    const members = `Key:${goQuote(key)}, Operator:${goQuote(operator)}, Values:${goTexts(values)}`;
    return `${type}{${members}}`;
  });
  const expressions = items === undefined ? `[]${type}(nil)` : `[]${type}{${items.join(", ")}}`;
  return unquoted(`v1.LabelSelector{MatchLabels:${formatGoMap(matchLabels)}, MatchExpressions:${expressions}}`);
}

function goTexts(texts: readonly string[] | undefined): string {
  if (texts === undefined) return "[]string(nil)";
  return `[]string{${texts.map((text) => goQuote(text)).join(", ")}}`;
}
