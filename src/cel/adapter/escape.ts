/**
 * Escapes field names to CEL identifiers: `my-name` is `my__dash__name`, `namespace` is `__namespace__`. Names that
 * cannot be escaped (a leading digit, a space) are not accessible in expressions.
 */

const reserved: ReadonlySet<string> = new Set(
  (
    "true false null in as break const continue else for function if import let loop package namespace return var " +
    "void while"
  ).split(" "),
);
const escapes: Readonly<Record<string, string>> = {
  __: "__underscores__",
  ".": "__dot__",
  "-": "__dash__",
  "/": "__slash__",
};
const unescapes: Readonly<Record<string, string>> = { underscores: "__", dot: ".", dash: "-", slash: "/" };

/** Undefined when the name cannot be escaped. */
export function escapeName(name: string): string | undefined {
  if (reserved.has(name)) return `__${name}__`;
  if (!/^[A-Za-z_./-][A-Za-z0-9_./-]*$/.test(name)) return undefined;
  return name.replaceAll(/__|[-./]/g, (part) => escapes[part]!);
}

/** Undefined when the name is not validly escaped. */
export function unescapeName(name: string): string | undefined {
  if (!name.includes("__")) return name;
  let valid = true;
  const plain = name.replaceAll(/__[^_]+__/g, (part) => {
    const inside = part.slice(2, -2);
    if (Object.hasOwn(unescapes, inside)) return unescapes[inside]!;
    if (!reserved.has(inside) || part.length !== name.length) valid = false;
    return inside;
  });
  return valid ? plain : undefined;
}
