/**
 * Expands `$(NAME)` in commands, arguments and environment values. `$$` is a literal dollar, so `$$(NAME)` becomes
 * `$(NAME)`. A reference to an undefined name, or without its closing parenthesis, stays unchanged.
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  let out = "";
  let at = 0;
  while (at < text.length) {
    const dollar = text.indexOf("$", at);
    if (dollar < 0 || dollar === text.length - 1) return out + text.slice(at);
    out += text.slice(at, dollar);
    const next = text[dollar + 1];
    const close = next === "(" ? text.indexOf(")", dollar) : -1;
    if (next === "$") {
      out += "$";
      at = dollar + 2;
    } else if (close > 0) {
      const name = text.slice(dollar + 2, close);
      out += lookup(name) ?? `$(${name})`;
      at = close + 1;
    } else {
      out += `$${next}`;
      at = dollar + 2;
    }
  }
  return out;
}
