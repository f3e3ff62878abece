import t from "tap";
import { encodeYaml, parseYaml } from "./yaml.ts";

t.test("parseYaml() parses documents and returns the line of every field", async (t) => {
  const text = ["a: 1", "list:", "- x: yes", "- z: |", "    text", "---", "# nothing", "---", "b: {c: 0644}"].join(
    "\n",
  );
  const [first, second, third] = parseYaml(text);
  t.same(first?.value, { a: 1, list: [{ x: true }, { z: "text\n" }] });
  t.equal(first?.line("list"), 2);
  t.equal(first?.line("list[1].z"), 4);
  t.equal(first?.line("nowhere"), undefined);
  t.equal(second?.value, null);
  t.same(third?.value, { b: { c: 420 } });
  t.equal(third?.line("b.c"), 9);
  t.same(parseYaml(""), []);
});

t.test("parseYaml() reports duplicate members", async (t) => {
  const [document] = parseYaml("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n");
  t.same(document?.duplicates, ["b.c", "a"]);
  t.same(document?.value, { a: 3, b: { c: 2 } });
});

t.test("parseYaml() resolves anchors and merge keys", async (t) => {
  const [document] = parseYaml("base: &b {p: 1, q: 2}\none: {<<: *b, q: 3}\ntwo: {<<: [*b, {r: 4}]}\n");
  t.same(document?.value, { base: { p: 1, q: 2 }, one: { p: 1, q: 3 }, two: { p: 1, q: 2, r: 4 } });
});

t.test("parseYaml() throws for invalid input with its line", async (t) => {
  const bomb = ["a: &a [x,x,x,x,x,x,x,x,x]"];
  for (let level = 1; level < 9; level++) {
    const [name, last] = ["abcdefghi"[level], "abcdefghi"[level - 1]];
    bomb.push(`${name}: &${name} [${Array(9).fill(`*${last}`).join(",")}]`);
  }
  const cases: readonly (readonly [string, RegExp])[] = [
    ["a: [1", /^yaml: line 1: did not find expected/],
    ["a: b\n c: d", /^yaml: line 2: /],
    ["x: 1\na: *missing", /^yaml: unknown anchor 'missing' referenced/],
    ["a: &a {b: *a}", /unknown anchor/],
    ["- ".repeat(300), /nesting exceeded/],
    [bomb.join("\n"), /excessive aliasing/],
    ["a: !!js/function x", /cannot decode "x" as a !!js\/function/],
    ["? [a]\n: 1", /a key must be a scalar/],
    ["<<: 1", /map merge requires map/],
    ["\0", /^yaml: control characters are not allowed$/],
    ["a: b: c\n- x", /^yaml: mapping values are not allowed in this context$/],
    ["a: 1\nb", /^yaml: line 2: could not find/],
    ["a: x\n\tb: 1", /^yaml: line 2: found a tab character that violates indentation$/],
    ["a:\n\tb: 1", /^yaml: line 2: found character that cannot start any token$/],
    ["a: [1, 2", /^yaml: line 1: did not find expected /],
  ];
  for (const [text, message] of cases) t.throws(() => parseYaml(text), { name: "SyntaxError", message });
});

t.test("parseYaml() cannot reach a prototype", async (t) => {
  const value = parseYaml("__proto__: {admin: true}")[0]?.value as object;
  t.equal(Object.getPrototypeOf(value), Object.prototype);
});

t.test("encodeYaml() sorts members and quotes strings that would parse as other types", async (t) => {
  t.equal(
    encodeYaml({ b: ["x", { c: 1, a: "yes" }], a: "0644", d: "2021-01-01T00:00:00Z" }),
    'a: "0644"\nb:\n- x\n- a: "yes"\n  c: 1\nd: "2021-01-01T00:00:00Z"\n',
  );
});

t.test("parseYaml() reports errors with the messages of Go's parser", async (t) => {
  const cases: readonly (readonly [text: string, message: string])[] = [
    ["a: [b\n", "line 1: did not find expected ',' or ']'"],
    ["x: 1\na:\n- [b\nc: 1\n", "line 3: did not find expected ',' or ']'"],
    ["a: {b: 1\n", "line 1: did not find expected ',' or '}'"],
    ["a: {b: 1 c: 2}\n", "did not find expected ',' or '}'"],
    ["a: [{b: '}'}, [c # ]\n", "line 1: did not find expected ',' or ']'"],
    ["a: 'b\n", "line 2: found unexpected end of stream"],
    ["a: 1\n- b\n", "line 1: did not find expected key"],
    ["a:\n  b: 1\n c: 2\n", "line 2: did not find expected key"],
    ["a:\n  - b\n c: d\n", "line 2: did not find expected key"],
    ["- a\nb: c\n", "line 1: did not find expected '-' indicator"],
    ["a: b: c\n", "mapping values are not allowed in this context"],
    ["a\nb: 1\n", "line 2: mapping values are not allowed in this context"],
    ["a: - b\n", "block sequence entries are not allowed in this context"],
    ["x: 1\na: @b\n", "line 2: found character that cannot start any token"],
    ["\ta: 1\n", "found character that cannot start any token"],
    ["a: ]\n", "did not find expected node content"],
    ["---\n%FOO\n", "line 2: found unknown directive name"],
    ["a: |x\n  b\n", "did not find expected comment or line break"],
  ];
  for (const [text, message] of cases) t.throws(() => parseYaml(text), { message: `yaml: ${message}` }, text);
});
