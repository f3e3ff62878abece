/** A place among the words of an expression. */
import { SyntaxIssue, type Token } from "./lexer.ts";

export class TokenCursor {
  readonly #tokens: readonly Token[];
  #at = 0;

  /** The last token is `<EOF>`. */
  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  peek(ahead = 0): Token {
    return this.#tokens[this.#at + ahead] ?? this.#tokens.at(-1)!;
  }

  /** Never past the end. */
  advance(): Token {
    const token = this.peek();
    if (token.kind !== "<EOF>") this.#at++;
    return token;
  }

  /** The next word, if it is of this kind. */
  take(kind: string): Token | undefined {
    return this.peek().kind === kind ? this.advance() : undefined;
  }

  expect(kind: string): Token {
    return this.take(kind) ?? this.unexpected(`'${kind}'`, this.peek(1).kind === kind);
  }

  /** `extraneous` when all would be well without this one word. */
  unexpected(expected: string, extraneous: boolean): never {
    const { text, offset } = this.peek();
    const kind = extraneous && text !== "<EOF>" ? "extraneous" : "mismatched";
    throw new SyntaxIssue(`Syntax error: ${kind} input '${text}' expecting ${expected}`, offset);
  }
}
