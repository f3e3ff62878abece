/** From the text of an expression to its tree. Recursive descent, one function for each rule of the grammar. */

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
import { SyntaxMistake, type Token, tokenize } from "./lexer.ts";
import { expandMacro, isMacro } from "./macros.ts";
import { type CelError, characters, locate } from "./source.ts";
import { Cursor } from "./token-cursor.ts";

export type Parsed =
  | { readonly expr: Expr; readonly errors?: undefined }
  | { readonly expr?: undefined; readonly errors: readonly CelError[] };

/** Reserved words, names of no variable; as names of members they are allowed. */
export const reservedNames: ReadonlySet<string> = new Set(
  "as break const continue else for function if import let loop package namespace return var void while".split(" "),
);

const startsOperand = ["[", "{", "(", ".", "-", "!", "true", "false", "null"];
const literalKinds = ["NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER"];
const operandStart: ReadonlySet<string> = new Set([...startsOperand, ...literalKinds]);
const expectedOperand = `{${[...startsOperand.map((word) => `'${word}'`), ...literalKinds].join(", ")}}`;
const relations: ReadonlySet<string> = new Set(["<", "<=", ">=", ">", "==", "!=", "in"]);
const sums: ReadonlySet<string> = new Set(["+", "-"]);
const products: ReadonlySet<string> = new Set(["*", "/", "%"]);
const ERRORS_MAX = 100;
const INT_MAX = 2n ** 63n - 1n;
const UINT_MAX = 2n ** 64n - 1n;

/** Parses and expands macros. The first mistake of form ends it; mistakes in macros and names are gathered. */
export function parse(source: string): Parsed {
  const length = characters(source);
  if (length > SOURCE_LENGTH_MAX) {
    const message = `expression code point size exceeds limit: size: ${length}, limit ${SOURCE_LENGTH_MAX}`;
    return { errors: [{ message, line: -1, column: -1 }] };
  }
  const mistakes: SyntaxMistake[] = [];
  try {
    const expr = new Parser(tokenize(source, mistakes), mistakes).whole();
    if (mistakes.length === 0) return { expr };
  } catch (error) {
    if (!(error instanceof SyntaxMistake)) throw error;
    mistakes.push(error);
  }
  const inOrder = mistakes.sort((a, b) => a.offset - b.offset).slice(0, ERRORS_MAX);
  return { errors: inOrder.map(({ message, offset }) => locate(source, offset, message)) };
}

class Parser {
  readonly #words: Cursor;
  readonly #mistakes: SyntaxMistake[];
  readonly #heights = new WeakMap<Expr, number>();
  #depth = 0;

  constructor(tokens: readonly Token[], mistakes: SyntaxMistake[]) {
    this.#words = new Cursor(tokens);
    this.#mistakes = mistakes;
  }

  whole(): Expr {
    const expr = this.#expr();
    if (this.#words.peek().kind !== "<EOF>") this.#words.unexpected("<EOF>", this.#words.peek(1).kind === "<EOF>");
    return expr;
  }

  #expr(): Expr {
    this.#depth++;
    if (this.#depth > NESTING_MAX) this.#tooDeep();
    const condition = this.#or();
    const question = this.#words.take("?");
    const expr = question === undefined ? condition : this.#conditional(condition, question);
    this.#depth--;
    return expr;
  }

  #conditional(condition: Expr, question: Token): Expr {
    const yes = this.#or();
    this.#words.expect(":");
    const no = this.#expr();
    return this.#node(call(question.offset, "_?_:_", [condition, yes, no]));
  }

  #or(): Expr {
    return this.#logic("||", () => this.#logic("&&", () => this.#relation()));
  }

  /** Long chains become balanced trees: they are evaluated in the same order, but not as deeply. */
  #logic(operator: "||" | "&&", operand: () => Expr): Expr {
    const terms = [operand()];
    const places: number[] = [];
    for (let token = this.#words.take(operator); token !== undefined; token = this.#words.take(operator)) {
      places.push(token.offset);
      terms.push(operand());
    }
    const tree = (low: number, high: number): Expr => {
      const middle = Math.floor((low + high + 1) / 2);
      const left = middle === low ? terms[middle]! : tree(low, middle - 1);
      const right = middle === high ? terms[middle + 1]! : tree(middle + 1, high);
      return this.#node(call(places[middle]!, `_${operator}_`, [left, right]));
    };
    return places.length === 0 ? terms[0]! : tree(0, places.length - 1);
  }

  #relation(): Expr {
    return this.#chain(relations, () => this.#sum());
  }

  #sum(): Expr {
    return this.#chain(sums, () => this.#chain(products, () => this.#unary()));
  }

  #chain(operators: ReadonlySet<string>, operand: () => Expr): Expr {
    let left = operand();
    while (operators.has(this.#words.peek().kind)) {
      const { kind, offset } = this.#words.advance();
      const name = kind === "in" ? "@in" : `_${kind}_`;
      left = this.#node(call(offset, name, [left, operand()]));
    }
    return left;
  }

  #unary(): Expr {
    const first = this.#words.peek();
    if (first.kind !== "!" && first.kind !== "-") return this.#member();
    // A minus before a number belongs to it: the smallest int has no positive counterpart.
    if (first.kind === "-" && /^NUM_(?:INT|FLOAT)$/.test(this.#words.peek(1).kind)) return this.#member();
    let count = 0;
    while (this.#words.take(first.kind) !== undefined) count++;
    const operand = this.#member();
    const name = first.kind === "!" ? "!_" : "-_";
    return count % 2 === 0 ? operand : this.#node(call(first.offset, name, [operand]));
  }

  #member(): Expr {
    let expr = this.#primary();
    for (;;) {
      const dot = this.#words.take(".");
      if (dot !== undefined) {
        expr = this.#node(this.#afterDot(expr, dot));
        continue;
      }
      const bracket = this.#words.take("[");
      if (bracket === undefined) return expr;
      const name = this.#words.take("?") === undefined ? "_[_]" : "_[?_]";
      const index = this.#expr();
      this.#words.expect("]");
      expr = this.#node(call(bracket.offset, name, [expr, index]));
    }
  }

  #afterDot(operand: Expr, dot: Token): Expr {
    const optional = this.#words.take("?") !== undefined;
    const name = this.#words.peek();
    if (name.kind === "ESC_IDENTIFIER") this.#mistake("unsupported syntax: '`'", name.offset);
    else if (name.kind !== "IDENTIFIER") this.#noMember(name, optional);
    this.#words.advance();
    const open = optional ? undefined : this.#words.take("(");
    if (open !== undefined) return this.#call(open, name.text, operand);
    if (optional) return call(dot.offset, "_?._", [operand, literal(name.offset, name.text)]);
    return { kind: "select", offset: dot.offset, operand, field: name.text, test: false };
  }

  #noMember(token: Token, optional: boolean): never {
    if (["true", "false", "null", "in"].includes(token.kind)) this.#words.unexpected("IDENTIFIER", false);
    const seen = optional ? `.?${token.text}` : `.${token.text}`;
    throw new SyntaxMistake(`Syntax error: no viable alternative at input '${seen}'`, token.offset);
  }

  #call(open: Token, name: string, target?: Expr): Expr {
    const args = this.#list(")", () => this.#expr(), false);
    if (isMacro(name, args.length, target !== undefined)) {
      const expanded = expandMacro({ offset: open.offset, name, args, ...(target && { target }) });
      if (!(expanded instanceof SyntaxMistake)) {
        // As deep as it is written: what a macro adds is not the writer's.
        this.#heights.set(expanded, this.#heightAbove(target === undefined ? args : [target, ...args]));
        return expanded;
      }
      this.#mistakes.push(expanded);
      return literal(open.offset, null);
    }
    return call(open.offset, name, args, target);
  }

  #primary(): Expr {
    const token = this.#words.peek();
    switch (token.kind) {
      case "(": {
        this.#words.advance();
        const expr = this.#expr();
        this.#words.expect(")");
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
    const start = this.#words.peek();
    const dot = this.#words.take(".") === undefined ? "" : ".";
    const token = this.#words.peek();
    if (token.kind !== "IDENTIFIER") this.#noMember(token, false);
    this.#words.advance();
    const object = this.#objectLiteral(`${dot}${token.text}`);
    if (object !== undefined) return object;
    if (reservedNames.has(token.text)) {
      this.#mistake(`reserved identifier: ${token.text}`, start.offset);
      return literal(start.offset, null);
    }
    const open = this.#words.take("(");
    if (open !== undefined) return this.#node(this.#call(open, `${dot}${token.text}`));
    return identifier(token.offset, `${dot}${token.text}`);
  }

  #objectLiteral(first: string): Expr | undefined {
    let name = first;
    let ahead = 0;
    while (this.#words.peek(ahead).kind === "." && this.#words.peek(ahead + 1).kind === "IDENTIFIER") {
      name += `.${this.#words.peek(ahead + 1).text}`;
      ahead += 2;
    }
    const open = this.#words.peek(ahead);
    if (open.kind !== "{") return undefined;
    for (; ahead >= 0; ahead--) this.#words.advance();
    const fields = this.#list("}", () => this.#objectField(), true);
    return this.#node({ kind: "object", offset: open.offset, type: name, fields });
  }

  #objectField(): ObjectField {
    const optional = this.#words.take("?") !== undefined;
    const name = this.#words.peek();
    if (name.kind !== "IDENTIFIER" && name.kind !== "ESC_IDENTIFIER") {
      this.#words.unexpected("{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}", false);
    }
    this.#words.advance();
    const { offset } = this.#words.expect(":");
    return { offset, name: name.text, value: this.#expr(), optional };
  }

  #listLiteral(): Expr {
    const { offset } = this.#words.advance();
    const optional = new Set<number>();
    let position = 0;
    const element = (): Expr => {
      if (this.#words.take("?") !== undefined) optional.add(position);
      position++;
      return this.#expr();
    };
    return this.#node({ kind: "list", offset, elements: this.#list("]", element, true), optional });
  }

  #mapLiteral(): Expr {
    const { offset } = this.#words.advance();
    const entry = (): MapEntry => {
      const optional = this.#words.take("?") !== undefined;
      const key = this.#expr();
      this.#words.expect(":");
      return { key, value: this.#expr(), optional };
    };
    return this.#node({ kind: "map", offset, entries: this.#list("}", entry, true) });
  }

  #literal(): Expr {
    const minus = this.#words.peek().kind === "-" ? this.#words.advance() : undefined;
    const token = this.#words.peek();
    const offset = minus?.offset ?? token.offset;
    const value = this.#constant(token, minus !== undefined, offset);
    if (value === undefined) this.#words.unexpected(expectedOperand, operandStart.has(this.#words.peek(1).kind));
    this.#words.advance();
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
    if (value > INT_MAX || value < -INT_MAX - 1n) this.#mistake("invalid int literal", token.offset);
    return value;
  }

  #uint(token: Token): bigint {
    const value = BigInt(token.text.slice(0, -1));
    if (value > UINT_MAX) this.#mistake("invalid uint literal", token.offset);
    return value;
  }

  #double(token: Token, negative: boolean): number {
    const value = Number(token.text);
    if (!Number.isFinite(value)) this.#mistake("invalid double literal", token.offset);
    return negative ? -value : value;
  }

  /** What stands between brackets, with commas; the opening bracket is behind us. */
  #list<T>(close: string, item: () => T, trailingComma: boolean): T[] {
    const items: T[] = [];
    while (this.#words.take(close) === undefined) {
      if (trailingComma && items.length === 0 && this.#words.take(",") !== undefined) {
        this.#words.expect(close);
        return items;
      }
      items.push(item());
      if (this.#words.take(",") === undefined) {
        this.#words.expect(close);
        return items;
      }
      if (this.#words.peek().kind === close && !trailingComma) this.#words.unexpected(expectedOperand, false);
    }
    return items;
  }

  /** Every new node passes here: trees are only as deep as they can be walked. */
  #node(expr: Expr): Expr {
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
    throw new SyntaxMistake(`expression recursion limit exceeded: ${NESTING_MAX}`, this.#words.peek().offset);
  }

  #mistake(message: string, offset: number): void {
    this.#mistakes.push(new SyntaxMistake(message, offset));
  }
}
