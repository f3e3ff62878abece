/** Label and field selectors: `app=web,tier in (a,b),!old` and `spec.nodeName=n1`. */

import { goQuote } from "../../../schema/value/go-quote.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import type { ApiObject, Kind } from "../../kind.ts";
import { badRequest } from "../../status.ts";
import type { LabelSelector } from "../label-selector.ts";
import { labelValue, qualifiedName } from "../validation/names.ts";

type Labels = Readonly<Record<string, string>>;

export interface Requirement {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
  readonly values: readonly string[];
}

/** The maximum length of a selector: each requirement is evaluated for every object of a list. */
const SELECTOR_MAX_CHARS = 8192;
const TOKEN = /[ \t\r\n]*(?:(==|!=|=|!|,|\(|\)|>|<)|([^ \t\r\n=!,()<>]+))/y;

/** Throws a `StatusError` 400 for an invalid selector. An empty text selects everything. */
export function parseLabelSelector(text: string): readonly Requirement[] {
  if (text.length > SELECTOR_MAX_CHARS) throw badRequest("unable to parse requirement: the selector is too long");
  return new SelectorParser(tokenize(text)).requirements();
}

function tokenize(text: string): readonly string[] {
  const found: string[] = [];
  TOKEN.lastIndex = 0;
  const end = text.replace(/[ \t\r\n]+$/, "").length;
  while (TOKEN.lastIndex < end) {
    const match = TOKEN.exec(text);
    if (match === null) throw badRequest(`unable to parse requirement: cannot read ${goQuote(text)}`);
    found.push(match[1] ?? match[2] ?? "");
  }
  return found;
}

class SelectorParser {
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens;
  }

  requirements(): readonly Requirement[] {
    const found: Requirement[] = [];
    let expected = "!, identifier, or 'end of string'";
    while (this.#at < this.#tokens.length) {
      if (!this.#startsRequirement()) throw badRequest(unexpectedToken(this.#peek(), expected));
      found.push(this.#requirement());
      const separator = this.#next();
      if (separator === undefined) break;
      if (separator !== ",") throw badRequest(unexpectedToken(separator, "',' or 'end of string'"));
      expected = "identifier after ','";
      if (this.#peek() === undefined) throw badRequest(unexpectedToken("", expected));
    }
    return found;
  }

  #startsRequirement(): boolean {
    const token = this.#peek() ?? "";
    return token === "!" || !isSymbol(token);
  }

  #requirement(): Requirement {
    if (this.#peek() === "!") {
      this.#at += 1;
      return validateRequirement({ key: this.#key(), operator: "DoesNotExist", values: [] });
    }
    const key = this.#key();
    const operator = this.#peek();
    if (operator === undefined || operator === ",") return validateRequirement({ key, operator: "Exists", values: [] });
    this.#at += 1;
    switch (operator) {
      case "=":
      case "==":
        return validateRequirement({ key, operator: "In", values: [this.#value()] });
      case "!=":
        return validateRequirement({ key, operator: "NotIn", values: [this.#value()] });
      case ">":
        return validateRequirement({ key, operator: "Gt", values: [this.#value()] });
      case "<":
        return validateRequirement({ key, operator: "Lt", values: [this.#value()] });
      case "in":
        return validateRequirement({ key, operator: "In", values: this.#set() });
      case "notin":
        return validateRequirement({ key, operator: "NotIn", values: this.#set() });
      default:
        throw requirementError(unexpectedToken(operator, "in, notin, =, ==, !=, gt, lt"));
    }
  }

  /** The value may be absent: `key=` selects the empty value. */
  #value(): string {
    const next = this.#peek();
    return next === undefined || next === "," ? "" : this.#word("identifier");
  }

  #set(): readonly string[] {
    const open = this.#next();
    if (open !== "(") throw requirementError(`found '${open ?? ""}' expected: '('`);
    const first = this.#peek();
    if (first === ")") {
      this.#at += 1;
      return [""];
    }
    if (first === undefined || (first !== "," && isSymbol(first))) {
      throw requirementError(unexpectedToken(first, "',', ')' or identifier"));
    }
    const values = this.#identifiers();
    this.#at += 1;
    return [...values].sort();
  }

  /** Reads up to the closing parenthesis. `(,a)`, `(a,)` and `(a,,b)` include the empty value. */
  #identifiers(): ReadonlySet<string> {
    const values = new Set<string>();
    for (;;) {
      const token = this.#next();
      const following = this.#peek();
      if (token === ",") {
        if (values.size === 0) values.add("");
        if (following === ")") return values.add("");
        if (following !== ",") continue;
        this.#at += 1;
        values.add("");
        continue;
      }
      if (token === undefined || isSymbol(token)) throw requirementError(unexpectedToken(token, "',', or identifier"));
      values.add(token);
      if (following === ")") return values;
      if (following !== ",") throw requirementError(unexpectedToken(following, "',' or ')'"));
    }
  }

  /** A key is validated before the parser looks at what follows. */
  #key(): string {
    const key = this.#word("identifier");
    const problem = keyProblem(key);
    if (problem !== undefined) throw requirementError(problem);
    return key;
  }

  #word(what: string): string {
    const token = this.#next();
    if (token === undefined || isSymbol(token)) throw requirementError(unexpectedToken(token, what));
    return token;
  }

  #peek(): string | undefined {
    return this.#tokens[this.#at];
  }

  #next(): string | undefined {
    return this.#tokens[this.#at++];
  }
}

function isSymbol(token: string): boolean {
  return /^[=!,()<>]/.test(token);
}

function unexpectedToken(found: string | undefined, expected: string): string {
  return `found '${found ?? ""}', expected: ${expected}`;
}

function requirementError(why: string) {
  return badRequest(`unable to parse requirement: ${why}`);
}

function validateRequirement(requirement: Requirement): Requirement {
  const { key, operator, values } = requirement;
  const comparesNumbers = operator === "Gt" || operator === "Lt";
  const notNumbers = values.flatMap((value, i) => (comparesNumbers ? numberProblem(value, i) : []));
  const problems = [...notNumbers, ...values.flatMap((value, i) => valueProblem(key, value, i))];
  if (problems.length === 1) throw requirementError(problems.join());
  if (problems.length > 1) throw requirementError(`[${problems.join(", ")}]`);
  return requirement;
}

function keyProblem(key: string): string | undefined {
  const problems = qualifiedName(key);
  // Kubernetes prints `<nil>` for a missing path.
  return problems.length === 0 ? undefined : `<nil>: Invalid value: ${goQuote(key)}: ${problems.join("; ")}`;
}

function numberProblem(value: string, i: number): readonly string[] {
  if (isInteger(value)) return [];
  return [`values[${i}]: Invalid value: ${goQuote(value)}: for 'Gt', 'Lt' operators, the value must be an integer`];
}

function valueProblem(key: string, value: string, i: number): readonly string[] {
  const problems = labelValue(value);
  if (problems.length === 0) return [];
  return [`values[${i}][${key}]: Invalid value: ${goQuote(value)}: ${problems.join("; ")}`];
}

export function matchesLabels(requirements: readonly Requirement[], labels: Labels | undefined): boolean {
  return requirements.every((requirement) => matchesValue(requirement, getMember(labels, requirement.key)));
}

/** Whether the value, undefined if missing, satisfies the requirement. */
export function matchesValue({ operator, values }: Omit<Requirement, "key">, value: string | undefined): boolean {
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
      return isInteger(value) && isInteger(values[0]) && BigInt(value) > BigInt(values[0]);
    case "Lt":
      return isInteger(value) && isInteger(values[0]) && BigInt(value) < BigInt(values[0]);
    default:
      return operator satisfies never;
  }
}

function isInteger(text: string | undefined): text is string {
  return text !== undefined && /^[-+]?\d+$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text);
}

/**
 * Converts a `LabelSelector` to requirements. An empty selector selects everything; callers define what an absent one
 * selects.
 */
export function requirementsOf(selector: LabelSelector): readonly Requirement[] {
  const equal = Object.entries(selector.matchLabels ?? {}).map(
    ([key, value]): Requirement => ({ key, operator: "In", values: [value] }),
  );
  const expressions = (selector.matchExpressions ?? []).map(
    ({ key, operator, values }): Requirement => ({
      key,
      operator: operator as Requirement["operator"],
      values: values ?? [],
    }),
  );
  return [...equal, ...expressions];
}

/** One term of a field selector. */
export interface FieldTerm {
  readonly field: string;
  readonly equal: boolean;
  readonly value: string;
}

/** Throws a `StatusError` 400 for an invalid selector or a field that the kind does not support. */
export function parseFieldSelector<T extends ApiObject>(text: string, kind: Kind<T>): readonly FieldTerm[] {
  const terms = splitFieldSelector(text);
  const unsupported = terms.find(({ field }) => !isSelectable(field, kind));
  if (unsupported !== undefined) throw unsupportedFieldError(unsupported.field, kind);
  return terms;
}

/**
 * Throws a `StatusError` 400 for an invalid selector. As in Kubernetes the terms are sorted, and those without a field
 * and a value, as `=`, are dropped.
 */
export function splitFieldSelector(text: string): readonly FieldTerm[] {
  if (text.length > SELECTOR_MAX_CHARS) throw badRequest("invalid selector: it is too long");
  const terms = (text.match(/(?:\\.?|[^,\\])+/gs) ?? []).sort();
  const split = terms.map((term) => {
    const match = /^(.*?)(==|!=|=)(.*)$/s.exec(term);
    if (match === null) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`);
    const [, field = "", operator, value = ""] = match;
    return { field, equal: operator !== "!=", value: unescapeValue(value) };
  });
  return split.filter(({ field, value }) => field !== "" || value !== "");
}

function unescapeValue(value: string): string {
  return value.replace(/\\([\\,=])|(\\.?)|[,=]/gsu, (found, escaped?: string, invalid?: string) => {
    if (escaped !== undefined) return escaped;
    if (invalid !== undefined) throw badRequest(`invalid field selector: invalid escape sequence: ${invalid}`);
    // Kubernetes prints the number of the character.
    throw badRequest(`invalid field selector: unescaped character in value: ${found.codePointAt(0)}`);
  });
}

function isSelectable(field: string, kind: Kind): boolean {
  return (
    field === "metadata.name" ||
    (field === "metadata.namespace" && (kind.namespaced || hasOnlyCommonFields(kind))) ||
    Object.hasOwn(kind.selectableFields, field)
  );
}

/** Built-in kinds without fields of their own accept `metadata.name` and `metadata.namespace`, namespaced or not. */
function hasOnlyCommonFields(kind: Kind): boolean {
  return kind.custom !== true && Object.keys(kind.selectableFields).length === 0;
}

/** Kubernetes' message differs for kinds without fields of their own: it lists the supported fields. */
function unsupportedFieldError(field: string, kind: Kind) {
  if (kind.unsupportedFieldMessage !== undefined) return badRequest(kind.unsupportedFieldMessage(field));
  if (!hasOnlyCommonFields(kind)) return badRequest(`field label not supported: ${field}`);
  const supported = `"metadata.name", "metadata.namespace"`;
  return badRequest(`${goQuote(field)} is not a known field selector: only ${supported}`);
}

export function matchesFields<T extends ApiObject>(terms: readonly FieldTerm[], object: T, kind: Kind<T>): boolean {
  return terms.every(({ field, equal, value }) => (fieldOf(object, field, kind) === value) === equal);
}

function fieldOf<T extends ApiObject>(object: T, field: string, kind: Kind<T>): string {
  if (field === "metadata.name") return object.metadata?.name ?? "";
  if (field === "metadata.namespace") return object.metadata?.namespace ?? "";
  return kind.selectableFields[field]?.(object) ?? "";
}
