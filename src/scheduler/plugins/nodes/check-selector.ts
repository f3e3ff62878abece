/** The mistakes in node selectors that the API server accepts, such as `Gt` with a word, with Kubernetes' messages. */
import type { NodeSelectorRequirement, NodeSelectorTerm } from "../../../api/core/node/selector.ts";
import type { PreferredSchedulingTerm } from "../../../api/core/pod-spec/affinity.ts";
import { labelValue, qualifiedName } from "../../../api/meta/validation/names.ts";
import { type FieldError, invalidField, notSupported, validateEach } from "../../../schema/validation/field-error.ts";
import { child, index, key as keyed } from "../../../schema/value/field-path.ts";
import { isEmptyTerm } from "./node-selector.ts";

/** Terms of weight zero are not read. */
export function checkPreferredTerms(terms: readonly PreferredSchedulingTerm[], path: string): readonly FieldError[] {
  return validateEach(terms, ({ weight, preference }, i) =>
    weight === 0 ? [] : checkTerm(preference, index(path, i)),
  );
}

export function checkTerm(term: NodeSelectorTerm, path: string): readonly FieldError[] {
  if (isEmptyTerm(term)) return [];
  const { matchExpressions = [], matchFields = [] } = term;
  return [
    ...validateEach(matchExpressions, (expression, i) =>
      checkExpression(expression, index(child(path, "matchExpressions"), i)),
    ),
    ...validateEach(matchFields, (expression, i) =>
      checkFieldExpression(expression, index(child(path, "matchFields"), i)),
    ),
  ];
}

const LABEL_OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
const FIELD_OPERATORS = ["In", "NotIn"];
const INT64 = /^[-+]?\d+$/;

/** As Kubernetes' parser of label requirements. */
function checkExpression({ key, operator, values = [] }: NodeSelectorRequirement, path: string): readonly FieldError[] {
  if (!LABEL_OPERATORS.includes(operator)) return [notSupported(child(path, "operator"), operator, LABEL_OPERATORS)];
  const at = child(path, "values");
  const isComparison = operator === "Gt" || operator === "Lt";
  const problem = valuesProblem(operator, values.length);
  const keyProblems = qualifiedName(key);
  return [
    ...(keyProblems.length === 0 ? [] : [invalidField(child(path, "key"), key, keyProblems.join("; "))]),
    ...(problem === undefined ? [] : [invalidField(at, values, problem)]),
    ...validateEach(isComparison ? values : [], (value, i) =>
      INT64.test(value) && BigInt.asIntN(64, BigInt(value)) === BigInt(value)
        ? []
        : [invalidField(index(at, i), value, "for 'Gt', 'Lt' operators, the value must be an integer")],
    ),
    ...validateEach(values, (value, i) => {
      const problems = labelValue(value);
      return problems.length === 0 ? [] : [invalidField(keyed(index(at, i), key), value, problems.join("; "))];
    }),
  ];
}

function valuesProblem(operator: string, count: number): string | undefined {
  switch (operator) {
    case "In":
    case "NotIn":
      return count > 0 ? undefined : "for 'in', 'notin' operators, values set can't be empty";
    case "Gt":
    case "Lt":
      return count === 1 ? undefined : "for 'Gt', 'Lt' operators, exactly one value is required";
    default:
      return count === 0 ? undefined : "values set must be empty for exists and does not exist";
  }
}

function checkFieldExpression({ operator, values = [] }: NodeSelectorRequirement, path: string): readonly FieldError[] {
  if (!FIELD_OPERATORS.includes(operator)) return [notSupported(child(path, "operator"), operator, FIELD_OPERATORS)];
  return values.length === 1 ? [] : [invalidField(child(path, "values"), values, "must have one element")];
}
