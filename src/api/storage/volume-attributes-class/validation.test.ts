import t from "tap";
import { validateAttributesClass, validateAttributesClassUpdate } from "./validation.ts";

const fast = { driverName: "csi.example.com", parameters: { iops: "3000" } };

t.test("validateAttributesClass() requires a driver and parameters", async (t) => {
  t.same(validateAttributesClass(fast), []);
  t.match(validateAttributesClass({ driverName: "" }), [
    { field: "driverName", type: "FieldValueRequired" },
    { field: "parameters", detail: "must contain at least one key/value pair" },
  ]);
  t.match(validateAttributesClass({ ...fast, driverName: "a b" }), [
    { field: "driverName", type: "FieldValueInvalid" },
  ]);
  t.match(validateAttributesClass({ ...fast, parameters: { "": "x" } }), [{ detail: "field can not be empty." }]);
});

t.test("validateAttributesClassUpdate() keeps both", async (t) => {
  t.same(validateAttributesClassUpdate(fast, fast), []);
  t.match(validateAttributesClassUpdate({ driverName: "other.example.com", parameters: { iops: "1" } }, fast), [
    { field: "driverName", detail: "updates to driverName are forbidden." },
    { field: "parameters", detail: "updates to parameters are forbidden." },
  ]);
});
