import t from "tap";
import { TimeSlice } from "../../std/async/time-slice.ts";
import { encodeYaml } from "./write-yaml.ts";
import { parseYaml, parseYamlBody } from "./yaml.ts";

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
    ["a: &a {b: *a}", /contains itself/],
    ["- ".repeat(300), /nesting exceeded/],
    [bomb.join("\n"), /excessive aliasing/],
    ["a: !!int x", /cannot decode "x" as a !!int/],
    ["? [a]\n: 1", /invalid map key/],
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

t.test("encodeYaml() chooses the style of texts, and folds them, as Go's library does", async (t) => {
  const cases: readonly (readonly [value: unknown, text: string])[] = [
    ["", '""'],
    ["a b", "a b"],
    ["a: b", "'a: b'"],
    ["it's #1", "'it''s #1'"],
    ["it's: 1", "'it''s: 1'"],
    ["a #b", "'a #b'"],
    ["-a", "-a"],
    ["- a", "'- a'"],
    [" a", "' a'"],
    ["*", "'*'"],
    ["n", '"n"'],
    ["No", '"No"'],
    ["nO", "nO"],
    ["<<", "<<"],
    [".5", '".5"'],
    [".", "."],
    ["0x1F", '"0x1F"'],
    ["089", '"089"'],
    ["1_000", '"1_000"'],
    ["1e999", "1e999"],
    ["190:20:30", '"190:20:30"'],
    ["2001-1-2", '"2001-1-2"'],
    ["2001-02-30", "2001-02-30"],
    ["a\tb", '"a\\tb"'],
    ["é\u0080😀", '"é\\x80\\U0001F600"'],
    ["a\nb", "|-\n  a\n  b"],
    ["a\n\n", "|+\n  a\n"],
    ["\na", "|2-\n\n  a"],
    ["a \nb", '"a \\nb"'],
    [1.5e7 + 0.5, "1.50000005e+07"],
    [0.000_01, "1e-05"],
    [2n ** 63n, "9223372036854775808"],
    [null, "null"],
    [{}, "{}"],
    [[[], [1]], "- []\n- - 1"],
    ["word ".repeat(20).trim(), `${"word ".repeat(17).trim()}\n  word word word`],
    [`${"word ".repeat(17)}: x y`, `'${"word ".repeat(17).trim()}\n  : x y'`],
    [`${"é ".repeat(45)}\u0080`, `"${"é ".repeat(41).trim()}\n  ${"é ".repeat(4)}\\x80"`],
  ];
  for (const [value, text] of cases) t.equal(encodeYaml(value), `${text}\n`, JSON.stringify(text));
  const long = "k".repeat(129);
  t.equal(encodeYaml({ [long]: 1, "a b": [1] }), `a b:\n- 1\n? ${long}\n: 1\n`);
  t.equal(encodeYaml({ "a\nb": { c: [1] } }), "? |-\n  a\n  b\n: c:\n  - 1\n", "a key of several lines");
  const names = ["f10", "f9", "f09", "B", "a", "_", "Z9", "f:a", "."];
  const sorted = [".", "_", "B", "Z9", "a", "f:a", "f9", "f09", "f10"];
  const members = Object.fromEntries(names.map((name) => [name, 1]));
  t.equal(encodeYaml(members), sorted.map((name) => `${name}: 1\n`).join(""));
});

t.test("parseYaml() reports errors with the messages of Go's parser", async (t) => {
  const cases: readonly (readonly [text: string, message: string])[] = [
    ["a: [b\n", "line 1: did not find expected ',' or ']'"],
    ["x: 1\na:\n- [b\nc: 1\n", "line 3: did not find expected ',' or ']'"],
    ["a: {b: 1\n", "line 1: did not find expected ',' or '}'"],
    ["{", "line 1: did not find expected node content"],
    ["a: [b, ", "line 1: did not find expected node content"],
    ['a: "\u0001"', "control characters are not allowed"],
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

t.test(
  "parseYamlBody() reads the first document only, sorts members, and fails as Go's conversion to JSON",
  async (t) => {
    const parse = async (text: string) => (await parseYamlBody(text, 1000, new TimeSlice()))?.value;
    for (const text of [
      "a: 1\n---\n}{",
      "---\na: 1\n---\n: : :\n",
      "a: 1\n...\n}",
      "# c\n\n%YAML 1.1\n---\na: 1\n...\n",
      "{a: 1}{b",
    ])
      t.same(await parse(text), { a: 1 }, text);
    t.equal(await parse("---\n---\na: 1\n"), null);
    t.equal(JSON.stringify(await parse("b: {d: 1, c: 2}\na: 1\n")), '{"a":1,"b":{"c":2,"d":1}}');
    t.same(await parse("a: !foo 5\n.inf: b\n1: c\n"), { a: "5", ".inf": "b", "1": "c" });
    for (const [text, message] of [
      ["x: 1\na: .inf\n", "json: unsupported value: +Inf"],
      ["[-.inf]", "json: unsupported value: -Inf"],
      [".nan", "json: unsupported value: NaN"],
      ['x: 1\na: "\\ud83d"\n', "yaml: line 2: found invalid Unicode character escape code"],
      ['a: "\\U00110000"\n', "yaml: found invalid Unicode character escape code"],
      ["~: [1]\n", "unsupported map key of type: %!s(<nil>), key: <nil>, value: []interface {}{1}"],
      ["? {b: [x]}\n: c\n", 'yaml: invalid map key: map[interface {}]interface {}{"b":[]interface {}{"x"}}'],
      ["a: &d\n  b: *d\n", "yaml: anchor 'd' value contains itself"],
      ["%YAML 2.0\n---\na: 1\n", "yaml: found incompatible YAML document"],
    ] as const)
      await t.rejects(parse(text), { message }, text);
  },
);
