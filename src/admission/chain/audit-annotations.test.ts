import t from "tap";
import { AuditAnnotations } from "./audit-annotations.ts";

t.test("AuditAnnotations keep the first value of a key, and limit the number of keys and the length of values", (t) => {
  const annotations = new AuditAnnotations();
  t.equal(annotations.entries.size, 0);
  annotations.add("a.b/c", "first");
  annotations.add("a.b/c", "second");
  annotations.add("a.b/long", "x".repeat(20_000));
  t.equal(annotations.entries.get("a.b/c"), "first");
  t.equal(annotations.entries.get("a.b/long")?.length, 10_240);
  for (let i = 0; i < 300; i++) annotations.add(`a.b/${i}`, "");
  t.equal(annotations.entries.size, 128);
  t.end();
});
