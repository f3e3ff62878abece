import t from "tap";
import { finalizerWarnings } from "./warnings.ts";

t.test("finalizerWarnings() reports names without a domain or path that were added", (t) => {
  const object = (...finalizers: string[]) => ({ metadata: { finalizers } });
  const why = "to avoid accidental conflicts with other finalizer writers";
  const plain = `metadata.finalizers: "keep": prefer a domain-qualified finalizer name ${why}`;
  const dotted = `metadata.finalizers: "keep.example.com": prefer a domain-qualified finalizer name including a path (/) ${why}`;
  t.same(finalizerWarnings(object("keep.example.com", "keep", "keep"), undefined), [plain, dotted]);
  t.same(finalizerWarnings(object("keep.example.com", "keep"), object("keep")), [dotted]);
  t.same(finalizerWarnings(object("example.com/keep", "orphan", "foregroundDeletion", "kubernetes"), undefined), []);
  t.same(finalizerWarnings({}, object("keep")), []);
  t.match(finalizerWarnings(object("Odd name/x y"), undefined), [/^metadata\.finalizers: "Odd name\/x y": .+/]);
  t.end();
});
