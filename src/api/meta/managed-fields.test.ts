import t from "tap";
import { dropManagedFields } from "./managed-fields.ts";

t.test("dropManagedFields() keeps the rest, and the object itself where there are none", (t) => {
  const object = { metadata: { name: "a", managedFields: [{ manager: "m" }] }, data: { managedFields: "b" } };
  t.same(dropManagedFields(object), { metadata: { name: "a" }, data: { managedFields: "b" } });
  for (const other of [{}, { metadata: { name: "a" } }]) t.equal(dropManagedFields(other), other);
  t.end();
});
