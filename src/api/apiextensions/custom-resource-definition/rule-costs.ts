/** Compiles the CEL rules of a definition and estimates their cost when the definition is written. */
import { celTypeOf } from "../../../cel/adapter/schema-type.ts";
import type { UnboundedPart } from "../../../cel/cost/estimate.ts";
import { REQUEST_BYTES_MAX, RULE_ESTIMATE_MAX, SCHEMA_ESTIMATE_MAX } from "../../../cel/cost/limits.ts";
import type { Schema } from "../../../schema/schema.ts";
import { convertPart, convertResource } from "../../../schema/structural/convert.ts";
import type { JsonSchemaProps } from "../../../schema/structural/json-schema-props.ts";
import type { ExpressionChecker } from "../../../schema/structural/keywords.ts";
import {
  type BadValue,
  type FieldError,
  forbiddenField,
  invalidField,
  unquoted,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { POINTER_ADDRESS } from "../../../schema/validation/go-syntax.ts";
import type { ValidationRule } from "../../../schema/validation/rules.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { type CompiledRule, compileRules, type RuleCompileOptions } from "../custom-resource/rules.ts";

export interface RuleCostsOptions extends RuleCompileOptions {
  /** The schema is unchanged, so that the limit of each expression does not apply; that of their total does. */
  readonly unchanged?: boolean;
}

interface Cost {
  readonly field: string;
  readonly cost: number;
}

/** The number of the most expensive rules to list when the total exceeds the limit. */
const MOST_EXPENSIVE_MAX = 4;

class CostTotal {
  sum = 0;
  readonly dearest: Cost[] = [];

  observe(field: string, cost: number): void {
    this.sum += cost;
    this.dearest.push({ field, cost });
    this.dearest.sort((a, b) => b.cost - a.cost);
    this.dearest.length = Math.min(this.dearest.length, MOST_EXPENSIVE_MAX);
  }
}

interface RuleContext {
  readonly root: boolean;
  /** The maximum number of values at this position of the schema; undefined inside a list or map without a bound. */
  readonly cardinality: number | undefined;
  /** The enclosing lists and maps without a bound. */
  readonly unbounded: readonly string[];
}

export class RuleCosts implements ExpressionChecker {
  readonly #total: CostTotal;
  readonly #around: RuleContext;
  readonly #options: RuleCostsOptions;

  constructor(
    options: RuleCostsOptions,
    around: RuleContext = { root: true, cardinality: 1, unbounded: [] },
    total: CostTotal = new CostTotal(),
  ) {
    this.#options = options;
    this.#around = around;
    this.#total = total;
  }

  enter(props: JsonSchemaProps, path: string, into: "properties" | "values" | "items"): RuleCosts {
    const { cardinality, unbounded } = this.#around;
    if (into === "properties") return this.#below({ root: false, cardinality, unbounded });
    const word = into === "items" ? "maxItems" : "maxProperties";
    const most = props[word];
    if (most === undefined) {
      return this.#below({ root: false, cardinality: undefined, unbounded: [...unbounded, `give ${path} a ${word}`] });
    }
    const product = cardinality === undefined ? undefined : cardinality * most;
    return this.#below({ root: false, cardinality: product, unbounded });
  }

  #below(around: RuleContext): RuleCosts {
    return new RuleCosts(this.#options, around, this.#total);
  }

  check(props: JsonSchemaProps, path: string, uncorrelatable: string | undefined): readonly FieldError[] {
    const options = { name: path, metadata: objectMeta };
    const resourceRoot = this.#around.root;
    const schema = resourceRoot ? convertResource(props, options) : convertPart(props, options);
    const rules = compileRules(schema, { ...this.#options, resourceRoot });
    const field = child(path, "x-kubernetes-validations");
    if (rules === undefined) {
      const detail = "internal error: failed to retrieve type information for x-kubernetes-validations";
      return [{ type: "InternalError", field, detail }];
    }
    const each = this.#cardinalityOf(schema);
    return validateEach(rules, (rule, i) => this.#checkRule(rule, index(field, i), each, uncorrelatable));
  }

  /** The maximum number of values in a request: each takes a few bytes and a comma. */
  #cardinalityOf(schema: Schema): number {
    const { cardinality, root } = this.#around;
    if (cardinality !== undefined) return cardinality;
    return Math.floor(REQUEST_BYTES_MAX / ((celTypeOf(schema, { resourceRoot: root })?.minSize ?? 0) + 1));
  }

  #checkRule(compiled: CompiledRule, path: string, each: number, uncorrelatable: string | undefined): FieldError[] {
    const { rule, program, message } = compiled;
    const field = child(path, "rule");
    const errors: FieldError[] = [];
    if (program !== undefined) {
      const { max, unbounded } = program.estimate;
      errors.push(...this.#weigh(field, max * each, "estimated rule cost", unbounded));
    }
    if (compiled.error !== undefined) errors.push(invalidField(field, formatRule(rule), compiled.error));
    const messageField = child(path, "messageExpression");
    if (compiled.messageError !== undefined)
      errors.push(invalidField(messageField, formatRule(rule), compiled.messageError));
    if (message !== undefined) {
      const { max, unbounded } = message.estimate;
      errors.push(...this.#weigh(messageField, max, "estimated messageExpression cost", unbounded));
    }
    if (program === undefined) return errors;
    if (compiled.usesOldSelf && uncorrelatable !== undefined) {
      const why = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelatable}`;
      errors.push(invalidField(field, rule.rule, why));
    } else if (!compiled.usesOldSelf && rule.optionalOldSelf !== undefined) {
      const why = "may not be set if oldSelf is not used in rule";
      errors.push(invalidField(child(path, "optionalOldSelf"), rule.optionalOldSelf, why));
    }
    return errors;
  }

  #weigh(field: string, cost: number, what: string, parts: readonly UnboundedPart[]): readonly FieldError[] {
    this.#total.observe(field, cost);
    if (this.#options.unchanged === true || cost <= RULE_ESTIMATE_MAX) return [];
    const advice = [...this.#around.unbounded, ...parts.map(({ path, bound }) => `give ${path} a ${bound}`)];
    return [forbiddenField(field, costText(what, cost / RULE_ESTIMATE_MAX, advice))];
  }

  /** Call after all rules have been checked. */
  totalErrors(field: string): readonly FieldError[] {
    if (this.#total.sum <= SCHEMA_ESTIMATE_MAX) return [];
    const why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
    const what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
    return [
      ...this.#total.dearest.map((one) => forbiddenField(one.field, why)),
      forbiddenField(field, costText(what, this.#total.sum / SCHEMA_ESTIMATE_MAX, [])),
    ];
  }
}

function costText(what: string, factor: number, advice: readonly string[]): string {
  // Above a factor of 100 the exact value is of no use.
  const times = factor > 100 ? "more than 100x" : `${factor.toFixed(factor < 1.5 ? 6 : 1)}x`;
  const hint = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength";
  const text = `${what} exceeds budget by factor of ${times} (${hint} where arrays, maps, and strings are declared)`;
  return advice.length === 0 ? text : `${text}: ${advice.join(", ")}`;
}

/** As Go's `%#v`. */
function formatRule(rule: ValidationRule): BadValue {
  const { message = "", messageExpression = "", reason, fieldPath = "", optionalOldSelf } = rule;
  const pointer = (type: string, value: unknown): string =>
    `(*${type})(${value === undefined ? "nil" : POINTER_ADDRESS})`;
  const members = {
    Rule: goQuote(rule.rule),
    Message: goQuote(message),
    MessageExpression: goQuote(messageExpression),
    Reason: pointer("apiextensions.FieldValueErrorReason", reason),
    FieldPath: goQuote(fieldPath),
    OptionalOldSelf: pointer("bool", optionalOldSelf),
  };
  const texts = Object.entries(members).map(([name, text]) => `${name}:${text}`);
  return unquoted(`apiextensions.ValidationRule{${texts.join(", ")}}`);
}
