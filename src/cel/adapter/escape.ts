/**
 * Names of members as expressions can write them: `my-name` is `my__dash__name`, `namespace` is `__namespace__`. What
 * no escape makes a name of (a leading digit, a space) cannot be reached from expressions.
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

/** Undefined when expressions cannot name it. */
export function escapeName(name: string): string | undefined {
  if (reserved.has(name)) return `__${name}__`;
  if (!/^[A-Za-z_./-][A-Za-z0-9_./-]*$/.test(name)) return undefined;
  return name.replaceAll(/__|[-./]/g, (part) => escapes[part]!);
}

/** Undefined for what is no escaped name. */
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
