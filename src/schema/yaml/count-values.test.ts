import fc from "fast-check";
import t from "tap";
import { countYamlValues } from "./count-values.ts";
import { encodeYaml } from "./write-yaml.ts";
import { parseYaml } from "./yaml.ts";

function countValues(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce<number>((sum, each) => sum + countValues(each), 1);
}

/** The values of all documents; undefined when the text is invalid. */
function parsedValues(text: string): number | undefined {
  try {
    return parseYaml(text).reduce((sum, { value }) => sum + countValues(value), 0);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

t.test("countYamlValues() counts no values in block scalars", async (t) => {
  const script = "  if: [ x ] # it's\n".repeat(1000);
  for (const header of ["data: |", "data: >-", "a:\n- b:\n    data: |", "- |", "- - a\n- data: |\r"]) {
    const indent = /^ */.exec(header.split("\n").at(-1) ?? "")?.[0] ?? "";
    const text = `${header}\n${script.replaceAll(/^/gm, `${indent}  `)}`;
    t.ok(countYamlValues(text, 65_536) < 20, header);
  }
  t.ok(countYamlValues(encodeYaml({ data: { a: "x: y\n".repeat(5000), b: ["it's", "a: b", '"'] } }), 65_536) < 100);
});

t.test("countYamlValues() counts the lines of an ordinary object once", async (t) => {
  const ports = Array.from({ length: 1000 }, (_, n) => ({ name: `p-${n}`, port: n, quoted: "1" }));
  const value = { spec: { ports } };
  t.ok(countYamlValues(encodeYaml(value), 65_536) < 1.5 * countValues(value));
});

t.test("countYamlValues() is never less than the values in the text", async (t) => {
  const token = fc.constantFrom(
    ...["a", "b: ", "- ", "|", ">", ": |\n", "k: |\n", "- |\n", "? ", "\n", "\n  ", "\n    ", "\r", "\r\n", "#", " #"],
    ...['"', "'", "[", "]", "{", "}", ",", " ", "&x ", "*x", "!t ", "---\n", "...\n", "\\", "''", "[a, b]", "{a: b}"],
    ...['"x', "- k: |\n", "\t", "!<[> ", ": "],
  );
  fc.assert(
    fc.property(fc.array(token, { maxLength: 40 }), (tokens) => {
      const text = tokens.join("");
      const values = parsedValues(text);
      return values === undefined || countYamlValues(text, 65_536) >= values;
    }),
    { numRuns: 20_000, seed: 1 },
  );
  const evasions = [
    'a: "\\" : |\n  ", b: [',
    'a: ["x: |\n  ", {}, {}, {}, {}, {}]',
    "a: [!<]> b,\n c, d, e, f, g, h]",
    'a: [b "c, "d, e, f, g",h]',
    "a: [ # ]\n  b, c, d, e, f]",
    "a: |\rk: v\rl: w\rm: x",
    "- key: |\n  a: b\n  c: d\n  e: f",
    "? a: |\n  b: c\n  d: e",
  ];
  for (const text of evasions) t.ok(countYamlValues(text, 65_536) >= (parsedValues(text) ?? 0), text);
});

t.test("countYamlValues() counts the items of a long line to the maximum and a little more", async (t) => {
  for (const item of ["- ", "? ", "a: "]) {
    const count = countYamlValues(item.repeat(200_000), 50_000);
    t.ok(count > 50_000 && count < 50_100, `${item} ${count}`);
  }
});
