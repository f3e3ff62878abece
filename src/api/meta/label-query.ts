/** Label selectors in text (`app=web,tier in (a,b),!legacy`) and as `LabelSelector` objects: one list of requirements. */
import { invalidField, renderFieldError } from "../../schema/field-error.ts";
import type { LabelSelector } from "./label-selector.ts";
import { labelValue, qualifiedName } from "./names.ts";

export interface LabelRequirement {
  readonly key: string;
  readonly operator: "in" | "notin" | "exists" | "!" | "gt" | "lt";
  /** For `in` and `notin`: any of them; for `gt` and `lt`: the one number. */
  readonly values: readonly string[];
}

type Labels = Readonly<Record<string, string>>;

/** Whether all requirements hold. No requirements match everything. */
export function matchesLabels(requirements: readonly LabelRequirement[], labels: Labels | undefined): boolean {
  return requirements.every((requirement) => matches(requirement, labels ?? {}));
}

function matches({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "in":
      return value !== undefined && values.includes(value);
    case "notin":
      return value === undefined || !values.includes(value);
    case "exists":
      return value !== undefined;
    case "!":
      return value === undefined;
    case "gt":
      return value !== undefined && whole.test(value) && BigInt(value) > BigInt(values[0] ?? "0");
    case "lt":
      return value !== undefined && whole.test(value) && BigInt(value) < BigInt(values[0] ?? "0");
    default:
      return operator satisfies never;
  }
}

const whole = /^-?\d{1,19}$/;

/** The selector that a `LabelSelector` object means. An absent selector matches nothing: callers decide that. */
export function requirementsOf(selector: LabelSelector): readonly LabelRequirement[] {
  const equal = Object.entries(selector.matchLabels ?? {}).map(
    ([key, value]) => ({ key, operator: "in", values: [value] }) as const,
  );
  const expressions = (selector.matchExpressions ?? []).map((expression) => {
    const operator = operators[expression.operator];
    if (operator === undefined) throw new SyntaxError(`"${expression.operator}" is not a valid label selector operator`);
    return { key: expression.key, operator, values: expression.values ?? [] };
  });
  return [...equal, ...expressions];
}

const operators: Readonly<Record<string, LabelRequirement["operator"]>> = {
  In: "in",
  NotIn: "notin",
  Exists: "exists",
  DoesNotExist: "!",
};

/** Throws a `SyntaxError` in Kubernetes' words. Empty text has no requirements. */
export function parseLabelSelector(text: string): readonly LabelRequirement[] {
  const tokens = tokensOf(text);
  const requirements: LabelRequirement[] = [];
  const parser = { tokens, next: 0 };
  if (tokens.length === 0) return requirements;
  for (;;) {
    requirements.push(requirement(parser));
    const token = take(parser);
    if (token === "") return requirements;
    if (token !== ",") throw unexpected(token, "',' or 'end of string'");
    const following = peek(parser);
    if (following === "" || following === ",") throw unexpected(following, "identifier after ','");
  }
}

interface Parser {
  readonly tokens: readonly string[];
  next: number;
}

function tokensOf(text: string): readonly string[] {
  return text.match(/==|!=|[=!<>(),]|[^\s=!<>(),]+/g) ?? [];
}

function peek(parser: Parser): string {
  return parser.tokens[parser.next] ?? "";
}

function take(parser: Parser): string {
  const token = peek(parser);
  parser.next++;
  return token;
}

function requirement(parser: Parser): LabelRequirement {
  if (peek(parser) === "!") {
    take(parser);
    return checked({ key: identifier(parser), operator: "!", values: [] });
  }
  const key = identifier(parser);
  const token = peek(parser);
  if (token === "" || token === ",") return checked({ key, operator: "exists", values: [] });
  take(parser);
  switch (token) {
    case "in":
    case "notin":
      return checked({ key, operator: token, values: valueList(parser) });
    case "=":
    case "==":
      return checked({ key, operator: "in", values: [oneValue(parser)] });
    case "!=":
      return checked({ key, operator: "notin", values: [oneValue(parser)] });
    case ">":
    case "<":
      return checked({ key, operator: token === ">" ? "gt" : "lt", values: [oneValue(parser)] });
    default:
      throw unexpected(token, "in, notin, =, ==, !=, gt, lt");
  }
}

function identifier(parser: Parser): string {
  const token = take(parser);
  if (token === "" || symbols.has(token)) throw unexpected(token, "!, identifier, or 'end of string'");
  return token;
}

const symbols = new Set(["=", "==", "!=", "!", "<", ">", "(", ")", ","]);

/** The value may be missing: `key=` asks for the empty value. */
function oneValue(parser: Parser): string {
  const token = peek(parser);
  if (token === "" || token === ",") return "";
  if (symbols.has(token)) throw unexpected(token, "identifier");
  return take(parser);
}

function valueList(parser: Parser): string[] {
  const open = take(parser);
  if (open !== "(") throw unexpected(open, "'('");
  const values: string[] = [];
  for (;;) {
    values.push(oneValue(parser) === "" && peek(parser) === ")" ? "" : previous(parser));
    const token = take(parser);
    if (token === ")") return values;
    if (token !== ",") throw unexpected(token, "',' or ')'");
  }
}
