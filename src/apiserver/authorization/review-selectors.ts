/** Converts the selectors of an access review to the text of a list request's query. */
import type { FieldSelectorAttributes, LabelSelectorAttributes } from "../../api/authorization/access-review/schema.ts";
import { parseLabelSelector } from "../../api/meta/selectors/selector.ts";
import { StatusError } from "../../api/status.ts";

export interface SelectorText {
  readonly text?: string;
  /** The ignored part, without which the decision may be stricter. */
  readonly problem?: string;
}

const IGNORED = "ignored due to parse error";
const PARTLY_IGNORED = "partially ignored due to parse error";

type Requirements = NonNullable<FieldSelectorAttributes["requirements"]>;

export function fieldSelectorText(selector: FieldSelectorAttributes | undefined): SelectorText {
  if (selector?.rawSelector) {
    const terms = selector.rawSelector.split(",");
    return terms.every((term) => /[^=!]=/.test(term)) ? { text: selector.rawSelector } : { problem: IGNORED };
  }
  return joinTerms(selector?.requirements, ({ key, operator, values = [] }) => {
    if (values.length !== 1 || (operator !== "In" && operator !== "NotIn")) return undefined;
    return `${key}${operator === "In" ? "=" : "!="}${values[0]!.replace(/[\\,=]/g, "\\$&")}`;
  });
}

export function labelSelectorText(selector: LabelSelectorAttributes | undefined): SelectorText {
  if (selector?.rawSelector) {
    return isLabelSelector(selector.rawSelector) ? { text: selector.rawSelector } : { problem: IGNORED };
  }
  return joinTerms(selector?.requirements, ({ key, operator, values = [] }) => {
    const text = labelTerm(key, operator, values);
    return text !== undefined && isLabelSelector(text) ? text : undefined;
  });
}

function labelTerm(key: string, operator: string, values: readonly string[]): string | undefined {
  switch (operator) {
    case "In":
      return `${key} in (${values.join(",")})`;
    case "NotIn":
      return `${key} notin (${values.join(",")})`;
    case "Exists":
      return key;
    case "DoesNotExist":
      return `!${key}`;
    default:
      return undefined;
  }
}

function isLabelSelector(text: string): boolean {
  try {
    parseLabelSelector(text);
    return true;
  } catch (error) {
    if (error instanceof StatusError) return false;
    throw error;
  }
}

/** `termOf` returns undefined for a requirement that has no text form. */
function joinTerms(
  requirements: Requirements = [],
  termOf: (requirement: Requirements[number]) => string | undefined,
): SelectorText {
  const terms = requirements.map(termOf);
  const valid = terms.filter((term) => term !== undefined);
  const isPartial = terms.length > valid.length;
  return {
    ...(valid.length === 0 ? {} : { text: valid.join(",") }),
    ...(isPartial ? { problem: valid.length === 0 ? IGNORED : PARTLY_IGNORED } : {}),
  };
}
