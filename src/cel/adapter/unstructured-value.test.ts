import t from "tap";
import {
  base64,
  double,
  int32,
  list,
  map,
  object,
  optional,
  pointer,
  rawExtension,
  required,
  string,
} from "../../schema/define.ts";
import { toJson } from "./to-json.ts";
import { toUnstructuredValue } from "./unstructured-value.ts";

const inner = object("test/v1.Inner", { name: required(1, string), port: optional(2, int32) });
const outer = object("test/v1.Outer", {
  title: optional(1, string),
  ratio: optional(2, double),
  inner: pointer(3, inner),
  all: optional(4, list(inner)),
  labels: optional(5, map(string)),
  data: optional(6, map(base64)),
  raw: pointer(7, rawExtension),
});

const toPlain = (value: Readonly<Record<string, unknown>>, identity?: Readonly<Record<string, unknown>>): unknown =>
  toJson(toUnstructuredValue(outer, value, identity));

t.test("toUnstructuredValue() has the members that JSON contains", async (t) => {
  const full = {
    title: "a",
    ratio: 1.5,
    inner: { name: "b", port: 80 },
    all: [{ name: "c" }],
    labels: { x: "y" },
    data: { k: "AQI=" },
  };
  t.strictSame(toPlain(full), full);
  t.strictSame(toPlain({ title: "", labels: {}, all: [] }), {}, "empty values of optional members are left out");
  t.strictSame(toPlain({ inner: {} }), { inner: { name: "" } }, "a required member is always written");
  t.strictSame(toPlain({}, { kind: "Outer", apiVersion: "test/v1" }), { kind: "Outer", apiVersion: "test/v1" });
});

t.test("toUnstructuredValue() reads raw values as JSON, if they are", async (t) => {
  t.strictSame(toPlain({ raw: { a: 1 } }), { raw: { a: 1 } });
  t.strictSame(toPlain({ raw: Buffer.from('{"a":[1]}') }), { raw: { a: [1] } });
  t.strictSame(toPlain({ raw: Buffer.from("no JSON") }), { raw: null });
});
