import t from "tap";
import { validateFieldManager, validateManagedFields } from "./field-manager.ts";

t.test("validateFieldManager() accepts up to 128 bytes of printable characters", (t) => {
  for (const manager of ["", "kubectl", "a b", "ä".repeat(64)])
    t.same(validateFieldManager(manager, "fieldManager"), []);
  t.match(validateFieldManager("ä".repeat(65), "fieldManager"), [{ type: "FieldValueTooLong" }]);
  t.match(validateFieldManager("a\u0007b\u0008", "fieldManager"), [
    { detail: "invalid character U+0007 (at position 1)" },
    { detail: "invalid character U+0008 (at position 3)" },
  ]);
  t.match(validateFieldManager("ä\u0007", "fieldManager"), [{ detail: "invalid character U+0007 (at position 2)" }]);
  t.match(validateFieldManager("a\u00a0", "fieldManager"), [{ detail: "invalid character U+00A0 (at position 1)" }]);
  t.end();
});

t.test("validateManagedFields() reports the index of the invalid entry", (t) => {
  const entries = [{ manager: "ok" }, { manager: "x".repeat(129), subresource: "s".repeat(257) }];
  t.same(
    validateManagedFields(entries).map(({ field }) => field),
    ["metadata.managedFields[1].manager", "metadata.managedFields[1].subresource"],
  );
  t.same(validateManagedFields(undefined), []);
  t.end();
});
