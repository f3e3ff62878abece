/**
 * JSONPath as in kubectl and printer columns: `.status.conditions[?(@.type=="Ready")].status`, `.spec.l[0:2]`,
 * `.metadata.labels.a\.b/c`, `..name`, `.spec['x','y']`, `.l[*]`. Absent members yield no values.
 */

import { isPlainObject } from "../value/plain-object.ts";
import { canonicalJson } from "./canonical-json.ts";

export interface JsonPath {
  /** All values found, in the order of the document; none when finding them exceeds the budget. */
  find(root: unknown, budget?: PathBudget): readonly unknown[];
}

/** The values that paths may visit, which nested filters multiply. */
export class PathBudget {
  #left: number;

  constructor(values: number) {
    this.#left = values;
  }

  get isSpent(): boolean {
    return this.#left < 0;
  }

  /** Throws a `BudgetSpent`. */
  spend(values: number): void {
    this.#left -= values;
    if (this.isSpent) throw new BudgetSpent();
  }
}

class BudgetSpent extends Error {
  override readonly name = "BudgetSpent";
}

/** Of one path, when it has no other: twice the values of a request. */
const VISITED_MAX = 100_000;

export class JsonPathError extends Error {
  override readonly name = "JsonPathError";
}

/** In characters. */
const LENGTH_MAX = 1024;

/** Throws a `JsonPathError` when the path is invalid. The leading dot, `$` and the braces are optional. */
export function parseJsonPath(text: string): JsonPath {
  if (text.length > LENGTH_MAX) throw new JsonPathError(`path is longer than ${LENGTH_MAX} characters`);
  const inner = /^\{(.*)\}$/s.exec(text)?.[1] ?? text;
  const steps = parseSteps(inner.replace(/^\$/, ""));
  return {
    find(root, budget = new PathBudget(VISITED_MAX)) {
      if (budget.isSpent) return [];
      try {
        return evaluateSteps(steps, { root, budget }, root);
      } catch (error) {
        if (error instanceof BudgetSpent) return [];
        throw error;
      }
    },
  };
}

type Step =
  | { readonly kind: "names"; readonly names: readonly string[] }
  | { readonly kind: "indices"; readonly indices: readonly number[] }
  | {
      readonly kind: "slice";
      readonly from: number | undefined;
      readonly to: number | undefined;
      readonly step: number;
    }
  | { readonly kind: "all" }
  | { readonly kind: "descend" }
  | { readonly kind: "filter"; readonly filter: Filter };

interface Filter {
  readonly left: Operand;
  readonly operator?: string;
  readonly right?: Operand;
}

type Operand = { readonly value: unknown } | { readonly steps: readonly Step[]; readonly from: "root" | "item" };

function parseSteps(text: string): readonly Step[] {
  const steps: Step[] = [];
  let at = 0;
  while (at < text.length) {
    if (text.startsWith("..", at)) {
      steps.push({ kind: "descend" });
      at += text[at + 2] === "[" ? 2 : 1;
    } else if (text[at] === "[") {
      const end = findClosingBracket(text, at);
      steps.push(parseBrackets(text.slice(at + 1, end).trim()));
      at = end + 1;
    } else {
      const [whole = "", name = ""] = /^\.?((?:\\.|[^.[\]\\\s])*)/s.exec(text.slice(at)) ?? [];
      if (whole === "") throw new JsonPathError(`unrecognized character in path: ${JSON.stringify(text[at])}`);
      if (name === "*") steps.push({ kind: "all" });
      else if (name !== "") steps.push({ kind: "names", names: [name.replace(/\\(.)/gs, "$1")] });
      at += whole.length;
    }
  }
  return steps;
}

/** The index of the bracket that closes the one at `start`; quoted brackets do not count. */
function findClosingBracket(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (character === "'" || character === '"') {
      at = text.indexOf(character, at + 1);
      if (at === -1) break;
    } else if (character === "[") depth++;
    else if (character === "]" && --depth === 0) return at;
  }
  throw new JsonPathError("unterminated array");
}

function parseBrackets(text: string): Step {
  if (text === "*") return { kind: "all" };
  const filter = /^\?\((.*)\)$/s.exec(text)?.[1];
  if (filter !== undefined) return { kind: "filter", filter: parseFilter(filter) };
  if (/^(?:'[^']*'|"[^"]*")(?:\s*,\s*(?:'[^']*'|"[^"]*"))*$/.test(text)) {
    return { kind: "names", names: (text.match(/'[^']*'|"[^"]*"/g) ?? []).map((quoted) => quoted.slice(1, -1)) };
  }
  if (/^-?\d+(?:\s*,\s*-?\d+)*$/.test(text)) return { kind: "indices", indices: text.split(",").map(Number) };
  const slice = /^(-?\d+)?:(-?\d+)?(?::(\d+)?)?$/.exec(text);
  if (slice === null) throw new JsonPathError(`invalid array index ${text}`);
  const [, from, to, step] = slice;
  if (step === "0") throw new JsonPathError("step must be > 0");
  const number = (digits: string | undefined): number | undefined =>
    digits === undefined ? undefined : Number(digits);
  return { kind: "slice", from: number(from), to: number(to), step: number(step) ?? 1 };
}

/** Operators inside quotes and brackets do not count. */
const FILTER = /^((?:'[^']*'|"[^"]*"|\[[^\]]*\]|[^'"[\]=!<>])*)(==|!=|<=|>=|<|>)(.*)$/s;

function parseFilter(text: string): Filter {
  const [, left, operator, right] = FILTER.exec(text) ?? [];
  if (left === undefined || operator === undefined || right === undefined) return { left: parseOperand(text.trim()) };
  return { left: parseOperand(left.trim()), operator, right: parseOperand(right.trim()) };
}

function parseOperand(text: string): Operand {
  if (text.startsWith("@")) return { steps: parseSteps(text.slice(1)), from: "item" };
  if (text.startsWith("$")) return { steps: parseSteps(text.slice(1)), from: "root" };
  if (/^'[^']*'$|^"[^"]*"$/.test(text)) return { value: text.slice(1, -1) };
  if (text === "true" || text === "false") return { value: text === "true" };
  if (/^-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/.test(text)) return { value: Number(text) };
  throw new JsonPathError(`unrecognized operand in filter: ${text}`);
}

/** Bounds the result. Repeated `..` finds the same values again, which count once. */
const FOUND_MAX = 10_000;

interface Search {
  readonly root: unknown;
  readonly budget: PathBudget;
}

function evaluateSteps(steps: readonly Step[], search: Search, start: unknown): readonly unknown[] {
  let found: readonly unknown[] = [start];
  for (const step of steps) {
    const next = found.flatMap((value) => selectStep(step, value, search));
    search.budget.spend(1 + next.length);
    found = (step.kind === "descend" ? [...new Set(next)] : next).slice(0, FOUND_MAX);
  }
  return found;
}

function selectStep(step: Step, value: unknown, search: Search): readonly unknown[] {
  switch (step.kind) {
    case "names":
      return isPlainObject(value)
        ? step.names.flatMap((name) => (Object.hasOwn(value, name) ? [value[name]] : []))
        : [];
    case "indices":
      return Array.isArray(value)
        ? step.indices
            .map((index) => (index < 0 ? index + value.length : index))
            .flatMap((index) => itemAt(value, index))
        : [];
    case "slice":
      return Array.isArray(value)
        ? value.slice(step.from, step.to).filter((_, position) => position % step.step === 0)
        : [];
    case "all":
      return childrenOf(value);
    case "descend":
      return descendants(value, search.budget);
    case "filter":
      return (Array.isArray(value) ? value : []).filter((item) => matchesFilter(step.filter, item, search));
    default:
      return step satisfies never;
  }
}

function itemAt(list: readonly unknown[], index: number): readonly unknown[] {
  return index >= 0 && index < list.length ? [list[index]] : [];
}

function childrenOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (!isPlainObject(value)) return [];
  return Object.keys(value)
    .sort()
    .map((name) => value[name]);
}

function descendants(value: unknown, budget: PathBudget): readonly unknown[] {
  const children = childrenOf(value);
  budget.spend(children.length);
  return [value, ...children.flatMap((child) => descendants(child, budget))];
}

function matchesFilter({ left, operator, right }: Filter, item: unknown, search: Search): boolean {
  search.budget.spend(1);
  const lefts = valuesOf(left, item, search);
  if (operator === undefined || right === undefined) return lefts.length > 0;
  const rights = valuesOf(right, item, search);
  // An operand with several values matches nothing.
  if (lefts.length !== 1 || rights.length !== 1) return false;
  return compare(lefts[0], operator, rights[0]);
}

function valuesOf(operand: Operand, item: unknown, search: Search): readonly unknown[] {
  return "steps" in operand
    ? evaluateSteps(operand.steps, search, operand.from === "item" ? item : search.root)
    : [operand.value];
}

function compare(left: unknown, operator: string, right: unknown): boolean {
  if (operator === "==") return left === right;
  if (operator === "!=") return left !== right;
  const comparable =
    (typeof left === "number" && typeof right === "number") || (typeof left === "string" && typeof right === "string");
  if (!comparable) return false;
  switch (operator) {
    case "<":
      return left < right;
    case "<=":
      return left <= right;
    case ">":
      return left > right;
    default:
      return left >= right;
  }
}

/** Formats a value as kubectl does: strings unquoted, lists and objects as JSON. */
export function printValue(value: unknown): string {
  return typeof value === "object" && value !== null ? canonicalJson(value) : String(value);
}
