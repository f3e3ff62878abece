import fc from "fast-check";
import t from "tap";
import { encodeYaml } from "./write-yaml.ts";
import { yamlChunks } from "./yaml-chunks.ts";

const joined = (value: object): string => [...yamlChunks(value)].join("");

t.test("yamlChunks() gives the text of encodeYaml()", async (t) => {
  const many = (count: number, value: (index: number) => unknown) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value(index)]));
  const text = "a\n\n  b: c\n- d\n";
  const values: readonly object[] = [
    { a: 1 },
    [1, { a: 2 }],
    { data: many(2000, (index) => `v${index}`), kind: "X", "": many(600, () => text) },
    { items: [many(800, () => text), { small: 1 }, [many(800, () => "x")], 5, many(600, () => [])] },
    { a: { b: { c: many(1000, () => ({})) } }, [`long ${"k".repeat(2000)}`]: many(1000, () => 1) },
    many(1000, (index) => many(3, () => `line\n\n\nline ${index}\n`)),
    { l: Array.from({ length: 2000 }, (_, index) => (index % 2 === 0 ? many(2, () => "\n x") : null)) },
    JSON.parse(`{"__proto__":${JSON.stringify(many(700, () => "y"))},"a: b":${JSON.stringify(many(700, () => "z"))}}`),
    { n: many(1000, () => 2n ** 60n), empty: {}, list: [] },
  ];
  for (const value of values) t.equal(joined(value), encodeYaml(value));
  const lines = { a: many(700, () => "x\u2028y\n z\r\n\u0085\n"), b: many(700, () => "a\u2029\nb") };
  t.equal(joined(lines), encodeYaml(lines), "line separators of other kinds");
  t.ok([...yamlChunks({ data: many(20_000, () => "v") })].length > 20, "large values have several chunks");
});

t.test("yamlChunks() gives the text of encodeYaml() for any value in a large one", async (t) => {
  const filler = Array.from({ length: 600 }, (_, index) => index);
  fc.assert(
    fc.property(fc.string(), fc.jsonValue({ noUnicodeString: false }), (name, value) => {
      const large = { [name]: { filler, [`${name}x`]: value }, items: [{ filler, value }, value] };
      return joined(large) === encodeYaml(large);
    }),
    { numRuns: 30 },
  );
  t.pass();
});
