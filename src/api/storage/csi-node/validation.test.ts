import t from "tap";
import { validateDriverName } from "../../core/volume/source-validation.ts";
import { validateCSINode, validateCSINodeUpdate } from "./validation.ts";

t.test("the limits of node IDs and driver names count bytes, as in Kubernetes", async (t) => {
  const errors = (nodeID: string) =>
    validateCSINode({ spec: { drivers: [{ name: "csi.example.com", nodeID }] } }).map(({ field }) => field);
  for (const id of ["n", "x".repeat(256), "é".repeat(128)]) t.same(errors(id), [], `${Buffer.byteLength(id)} bytes`);
  for (const id of ["", "x".repeat(257), "é".repeat(129), "😀".repeat(65)]) {
    t.same(errors(id), ["spec.drivers[0].nodeID"], `${Buffer.byteLength(id)} bytes`);
  }
  const types = (driver: string) => validateDriverName(driver, "driver").map(({ type }) => type);
  t.same(types("x".repeat(63)), []);
  t.same(types("x".repeat(64)), ["FieldValueTooLong"]);
  t.same(types("é".repeat(32)), ["FieldValueTooLong", "FieldValueInvalid"]);
});

t.test("only the allocatable count of a driver may change, with a gate", async (t) => {
  const node = (nodeID: string, count: number) => ({
    spec: { drivers: [{ name: "csi.example.com", nodeID, allocatable: { count } }] },
  });
  const errors = (nodeID: string, count: number, isOn: boolean) =>
    validateCSINodeUpdate(node(nodeID, count), node("a", 1), { has: () => isOn }).length;
  t.equal(errors("a", 1, false), 0);
  t.equal(errors("a", 2, false), 1);
  t.equal(errors("a", 2, true), 0);
  t.equal(errors("b", 1, true), 1);
});
