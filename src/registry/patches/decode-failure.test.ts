import t from "tap";
import { describeDecodeFailure } from "./decode-failure.ts";

const NUMBER_FOR_TEXT = "json: cannot unmarshal number into Go struct field ConfigMap.data of type string";

t.test("describeDecodeFailure() sorts the objects on the path of a JSON patch, and no others", async (t) => {
  const before = { kind: "X", apiVersion: "v1", metadata: { name: "a", uid: "1" } };
  const after = { ...before, data: { b: "1", a: 5 } };
  const operations = [{ op: "add", path: "/data/a", value: 5 }] as const;
  const { text, detail } = describeDecodeFailure({ type: "json", operations }, before, after, NUMBER_FOR_TEXT);
  t.equal(text, '{"apiVersion":"v1","data":{"a":5,"b":"1"},"kind":"X","metadata":{"name":"a","uid":"1"}}');
  t.equal(detail, NUMBER_FOR_TEXT);
});

t.test("describeDecodeFailure() sorts the objects that a merge patch merged or created", async (t) => {
  const before = { kind: "X", metadata: { name: "a", uid: "1" }, spec: { z: 1, y: { q: 1, p: 2 } } };
  const value = { spec: { x: { b: 1, a: [{ d: 1, c: 2 }] } } };
  const after = { ...before, spec: { ...before.spec, ...value.spec } };
  const { text } = describeDecodeFailure({ type: "merge", value }, before, after, NUMBER_FOR_TEXT);
  t.equal(
    text,
    '{"kind":"X","metadata":{"name":"a","uid":"1"},"spec":{"x":{"a":[{"c":2,"d":1}],"b":1},"y":{"q":1,"p":2},"z":1}}',
  );
});

t.test("describeDecodeFailure() shows strategic patches in Go's format", async (t) => {
  const before = { metadata: { annotations: { old: "1" } } };
  const value = { metadata: { annotations: { a: { b: null }, old: null } } };
  const shown = describeDecodeFailure({ type: "strategic", value }, before, undefined, "cannot restore slice from map");
  t.same(shown, {
    text: "map[metadata:map[annotations:map[a:map[] old:<nil>]]]",
    detail: "cannot restore slice from map",
  });
});
