import t from "tap";
import { Annotations } from "./audit-annotations.ts";

t.test("Annotations keep the first value of a key, and no more than the audit log can bear", (t) => {
  const annotations = new Annotations();
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
