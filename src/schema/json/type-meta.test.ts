import t from "tap";
import { readTypeMeta } from "./type-meta.ts";

t.test("apiVersion and kind are read whatever the case of their names", async (t) => {
  t.same(readTypeMeta({ APIVERSION: "v1", Kind: "Pod" }), { apiVersion: "v1", kind: "Pod" });
  t.same(readTypeMeta({ kind: null }), { apiVersion: "", kind: "" });
  t.same(readTypeMeta(null), { apiVersion: "", kind: "" });
  t.throws(() => readTypeMeta([]), /cannot unmarshal array into Go value of type struct/);
  t.throws(
    () => readTypeMeta({ apiVersion: true }),
    /cannot unmarshal bool into Go struct field .apiVersion of type string/,
  );
});
