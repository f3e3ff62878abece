/** A recursive-descent parser with one method per grammar rule. */

import { NESTING_MAX, SOURCE_LENGTH_MAX } from "../cost/limits.ts";
import {
  call,
  children,
  type Expr,
  identifier,
  type Literal,
  literal,
  type MapEntry,
  type ObjectField,
} from "./ast.ts";
import { SyntaxIssue, type Token, tokenize } from "./lexer.ts";
import { expandMacro, isMacro } from "./macros.ts";
import { type CelError, countCharacters, createError } from "./source.ts";
import { TokenCursor } from "./token-cursor.ts";

export type ParseResult =
  | { readonly expr: Expr; readonly errors?: undefined }
  | { readonly expr?: undefined; readonly errors: readonly CelError[] };

/** Reserved words, which are not allowed as variables but as field names. */
export const reservedNames: ReadonlySet<string> = new Set(
  "as break const continue else for function if import let loop package namespace return var void while".split(" "),
);

const startsOperand = ["[", "{", "(", ".", "-", "!", "true", "false", "null"];
const literalKinds = ["NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER"];
const operandStart: ReadonlySet<string> = new Set([...startsOperand, ...literalKinds]);
const expectedOperandText = `{${[...startsOperand.map((word) => `'${word}'`), ...literalKinds].join(", ")}}`;
/** Of the first argument of a call. */
const expectedArgumentText = expectedOperandText.replace("'('", "'(', ')'");
const relations: ReadonlySet<string> = new Set(["<", "<=", ">=", ">", "==", "!=", "in"]);
const sums: ReadonlySet<string> = new Set(["+", "-"]);
const products: ReadonlySet<string> = new Set(["*", "/", "%"]);
const ERRORS_MAX = 100;
const INT_MAX = 2n ** 63n - 1n;
const UINT_MAX = 2n ** 64n - 1n;

/**
 * Parses and expands macros. Collects errors in macros, literals and names, and goes on after a field that is no name;
 * stops at the first other syntax error.
 */
export function parse(source: string): ParseResult {
  const length = countCharacters(source);
  if (length > SOURCE_LENGTH_MAX) {
    const message = `expression code point size exceeds limit: size: ${length}, limit ${SOURCE_LENGTH_MAX}`;
    return { errors: [{ message, line: -1, column: -1 }] };
  }
  const issues: SyntaxIssue[] = [];
  try {
    const expr = new Parser(tokenize(source, issues), issues).parseWhole();
    if (issues.length === 0) return { expr };
  } catch (error) {
    if (!(error instanceof SyntaxIssue)) throw error;
    issues.push(error);
  }
  const sorted = issues.sort((a, b) => a.offset - b.offset).slice(0, ERRORS_MAX);
  return { errors: sorted.map(({ message, offset }) => createError(source, offset, message)) };
}

function noViableAlternative({ text, offset }: Token, optional: boolean): SyntaxIssue {
  const seen = optional ? `.?${text}` : `.${text}`;
  return new SyntaxIssue(`Syntax error: no viable alternative at input '${seen}'`, offset);
}

class Parser {
  readonly #tokens: TokenCursor;
  readonly #issues: SyntaxIssue[];
  readonly #heights = new WeakMap<Expr, number>();
  #depth = 0;
  /** The token after the opening parenthesis of the last call, where a closing one is expected too. */
  #firstArgument: Token | undefined;

  constructor(tokens: readonly Token[], issues: SyntaxIssue[]) {
    this.#tokens = new TokenCursor(tokens);
    this.#issues = issues;
  }

  parseWhole(): Expr {
    const expr = this.#expr();
    if (this.#tokens.peek().kind !== "<EOF>") this.#tokens.unexpected("<EOF>", this.#tokens.peek(1).kind === "<EOF>");
    return expr;
  }

  #expr(): Expr {
    this.#depth++;
    if (this.#depth > NESTING_MAX) this.#tooDeep();
    const condition = this.#or();
    const question = this.#tokens.take("?");
    const expr = question === undefined ? condition : this.#conditional(condition, question);
    this.#depth--;
    return expr;
  }

  #conditional(condition: Expr, question: Token): Expr {
    const yes = this.#or();
    this.#tokens.expect(":");
    const no = this.#expr();
    return this.#checkHeight(call(question.offset, "_?_:_", [condition, yes, no]));
  }

  #or(): Expr {
    return this.#logic("||", () => this.#logic("&&", () => this.#relation()));
  }

  /** Builds balanced trees from long chains, which limits their depth but keeps the order of evaluation. */
  #logic(operator: "||" | "&&", operand: () => Expr): Expr {
    const terms = [operand()];
    const offsets: number[] = [];
    for (let token = this.#tokens.take(operator); token !== undefined; token = this.#tokens.take(operator)) {
      offsets.push(token.offset);
      terms.push(operand());
    }
    const tree = (low: number, high: number): Expr => {
      const middle = Math.floor((low + high + 1) / 2);
      const left = middle === low ? terms[middle]! : tree(low, middle - 1);
      const right = middle === high ? terms[middle + 1]! : tree(middle + 1, high);
      return this.#checkHeight(call(offsets[middle]!, `_${operator}_`, [left, right]));
    };
    return offsets.length === 0 ? terms[0]! : tree(0, offsets.length - 1);
  }

  #relation(): Expr {
    return this.#chain(relations, () => this.#sum());
  }

  #sum(): Expr {
    return this.#chain(sums, () => this.#chain(products, () => this.#unary()));
  }

  #chain(operators: ReadonlySet<string>, operand: () => Expr): Expr {
    let left = operand();
    while (operators.has(this.#tokens.peek().kind)) {
      const { kind, offset } = this.#tokens.advance();
      const name = kind === "in" ? "@in" : `_${kind}_`;
      left = this.#checkHeight(call(offset, name, [left, operand()]));
    }
    return left;
  }

  #unary(): Expr {
    const first = this.#tokens.peek();
    if (first.kind !== "!" && first.kind !== "-") return this.#member();
    // A minus before a number is part of the literal, since the smallest int has no positive counterpart.
    if (first.kind === "-" && /^NUM_(?:INT|FLOAT)$/.test(this.#tokens.peek(1).kind)) return this.#member();
    let count = 0;
    while (this.#tokens.take(first.kind) !== undefined) count++;
    const operand = this.#member();
    const name = first.kind === "!" ? "!_" : "-_";
    return count % 2 === 0 ? operand : this.#checkHeight(call(first.offset, name, [operand]));
  }

  #member(): Expr {
    let expr = this.#primary();
    for (;;) {
      const dot = this.#tokens.take(".");
      if (dot !== undefined) {
        const selected = this.#selectOrCall(expr, dot);
        if (selected === undefined) return expr;
        expr = this.#checkHeight(selected);
        continue;
      }
      const bracket = this.#tokens.take("[");
      if (bracket === undefined) return expr;
      const name = this.#tokens.take("?") === undefined ? "_[_]" : "_[?_]";
      const index = this.#expr();
      this.#tokens.expect("]");
      expr = this.#checkHeight(call(bracket.offset, name, [expr, index]));
    }
  }

  /** Undefined after an error, behind what the parser of Kubernetes skips then. */
  #selectOrCall(operand: Expr, dot: Token): Expr | undefined {
    const optional = this.#tokens.take("?") !== undefined;
    const name = this.#tokens.peek();
    if (name.kind === "ESC_IDENTIFIER") this.#report("unsupported syntax: '`'", name.offset);
    else if (name.kind !== "IDENTIFIER") {
      this.#issues.push(noViableAlternative(name, optional));
      while (!this.#isAfterMember(this.#tokens.peek().kind)) this.#tokens.advance();
      return undefined;
    }
    this.#tokens.advance();
    const open = optional ? undefined : this.#tokens.take("(");
    if (open !== undefined) return this.#call(open, name.text, operand);
    if (optional) return call(dot.offset, "_?._", [operand, literal(name.offset, name.text)]);
    return { kind: "select", offset: dot.offset, operand, field: name.text, test: false };
  }

  /** Whether an expression can continue with the token after a member. */
  #isAfterMember(kind: string): boolean {
    if (relations.has(kind) || sums.has(kind) || products.has(kind)) return true;
    return ["&&", "||", "?", "<EOF>"].includes(kind) || (this.#depth > 1 && [")", "]", "}", ",", ":"].includes(kind));
  }

  #call(open: Token, name: string, target?: Expr): Expr {
    this.#firstArgument = this.#tokens.peek();
    const args = this.#list(")", () => this.#expr(), false);
    if (isMacro(name, args.length, target !== undefined)) {
      const expanded = expandMacro({ offset: open.offset, name, args, ...(target && { target }) });
      if (!(expanded instanceof SyntaxIssue)) {
        // Nodes that a macro adds do not count for the depth limit.
        this.#heights.set(expanded, this.#heightAbove(target === undefined ? args : [target, ...args]));
        return expanded;
      }
      this.#issues.push(expanded);
      return literal(open.offset, null);
    }
    return call(open.offset, name, args, target);
  }

  #primary(): Expr {
    const token = this.#tokens.peek();
    switch (token.kind) {
      case "(": {
        this.#tokens.advance();
        const expr = this.#expr();
        this.#tokens.expect(")");
        return expr;
      }
      case "[":
        return this.#listLiteral();
      case "{":
        return this.#mapLiteral();
      case ".":
      case "IDENTIFIER":
        return this.#named();
      default:
        return this.#literal();
    }
  }

  /** A variable, a function call, or an object `a.b.C{field: value}`. */
  #named(): Expr {
    const start = this.#tokens.peek();
    const dot = this.#tokens.take(".") === undefined ? "" : ".";
    const token = this.#tokens.peek();
    if (token.kind !== "IDENTIFIER") throw noViableAlternative(token, false);
    this.#tokens.advance();
    const object = this.#objectLiteral(`${dot}${token.text}`);
    if (object !== undefined) return object;
    if (reservedNames.has(token.text)) {
      this.#report(`reserved identifier: ${token.text}`, start.offset);
      return literal(start.offset, null);
    }
    const open = this.#tokens.take("(");
    if (open !== undefined) return this.#checkHeight(this.#call(open, `${dot}${token.text}`));
    return identifier(token.offset, `${dot}${token.text}`);
  }

  #objectLiteral(first: string): Expr | undefined {
    let name = first;
    let ahead = 0;
    while (this.#tokens.peek(ahead).kind === "." && this.#tokens.peek(ahead + 1).kind === "IDENTIFIER") {
      name += `.${this.#tokens.peek(ahead + 1).text}`;
      ahead += 2;
    }
    const open = this.#tokens.peek(ahead);
    if (open.kind !== "{") return undefined;
    for (; ahead >= 0; ahead--) this.#tokens.advance();
    const fields = this.#list("}", () => this.#objectField(), true);
    return this.#checkHeight({ kind: "object", offset: open.offset, type: name, fields });
  }

  #objectField(): ObjectField {
    const optional = this.#tokens.take("?") !== undefined;
    const name = this.#tokens.peek();
    if (name.kind !== "IDENTIFIER" && name.kind !== "ESC_IDENTIFIER") {
      this.#tokens.unexpected("{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}", false);
    }
    this.#tokens.advance();
    const { offset } = this.#tokens.expect(":");
    return { offset, name: name.text, value: this.#expr(), optional };
  }

  #listLiteral(): Expr {
    const { offset } = this.#tokens.advance();
    const optional = new Set<number>();
    let position = 0;
    const element = (): Expr => {
      if (this.#tokens.take("?") !== undefined) optional.add(position);
      position++;
      return this.#expr();
    };
    return this.#checkHeight({ kind: "list", offset, elements: this.#list("]", element, true), optional });
  }

  #mapLiteral(): Expr {
    const { offset } = this.#tokens.advance();
    const entry = (): MapEntry => {
      const optional = this.#tokens.take("?") !== undefined;
      const key = this.#expr();
      this.#tokens.expect(":");
      return { key, value: this.#expr(), optional };
    };
    return this.#checkHeight({ kind: "map", offset, entries: this.#list("}", entry, true) });
  }

  #literal(): Expr {
    const minus = this.#tokens.peek().kind === "-" ? this.#tokens.advance() : undefined;
    const token = this.#tokens.peek();
    const offset = minus?.offset ?? token.offset;
    const value = this.#constant(token, minus !== undefined, offset);
    if (value === undefined) {
      const expected = token === this.#firstArgument ? expectedArgumentText : expectedOperandText;
      this.#tokens.unexpected(expected, operandStart.has(this.#tokens.peek(1).kind));
    }
    this.#tokens.advance();
    return value;
  }

  #constant(token: Token, negative: boolean, offset: number): Literal | undefined {
    switch (token.kind) {
      case "NUM_INT":
        return literal(offset, this.#int(token, negative));
      case "NUM_UINT":
        return { ...literal(offset, this.#uint(token)), unsigned: true };
      case "NUM_FLOAT":
        return literal(offset, this.#double(token, negative));
      case "STRING":
      case "BYTES":
        return literal(offset, token.value!);
      case "true":
      case "false":
        return literal(offset, token.kind === "true");
      case "null":
        return literal(offset, null);
      default:
        return undefined;
    }
  }

  #int(token: Token, negative: boolean): bigint {
    const size = BigInt(token.text);
    const value = negative ? -size : size;
    if (value > INT_MAX || value < -INT_MAX - 1n) this.#report("invalid int literal", token.offset);
    return value;
  }

  #uint(token: Token): bigint {
    const value = BigInt(token.text.slice(0, -1));
    if (value > UINT_MAX) this.#report("invalid uint literal", token.offset);
    return value;
  }

  #double(token: Token, negative: boolean): number {
    const value = Number(token.text);
    if (!Number.isFinite(value)) this.#report("invalid double literal", token.offset);
    return negative ? -value : value;
  }

  /** Parses comma-separated items up to the closing bracket; the opening one is consumed already. */
  #list<T>(close: string, item: () => T, trailingComma: boolean): T[] {
    const items: T[] = [];
    while (this.#tokens.take(close) === undefined) {
      if (trailingComma && items.length === 0 && this.#tokens.take(",") !== undefined) {
        this.#tokens.expect(close);
        return items;
      }
      items.push(item());
      if (this.#tokens.take(",") === undefined) {
        this.#tokens.expect(close);
        return items;
      }
      if (this.#tokens.peek().kind === close && !trailingComma) this.#tokens.unexpected(expectedOperandText, false);
    }
    return items;
  }

  /** Limits the depth of the tree, since later stages are recursive. */
  #checkHeight(expr: Expr): Expr {
    if (this.#heightOf(expr) > NESTING_MAX) this.#tooDeep();
    return expr;
  }

  #heightOf(expr: Expr): number {
    let height = this.#heights.get(expr);
    if (height === undefined) {
      height = this.#heightAbove(children(expr));
      this.#heights.set(expr, height);
    }
    return height;
  }

  #heightAbove(exprs: readonly Expr[]): number {
    let highest = 0;
    for (const expr of exprs) highest = Math.max(highest, this.#heightOf(expr));
    return highest + 1;
  }

  #tooDeep(): never {
    throw new SyntaxIssue(`expression recursion limit exceeded: ${NESTING_MAX}`, this.#tokens.peek().offset);
  }

  #report(message: string, offset: number): void {
    this.#issues.push(new SyntaxIssue(message, offset));
  }
}
