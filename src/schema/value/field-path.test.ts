import t from "tap";
import { child, index, joinPath, key, splitPath } from "./field-path.ts";

t.test("child(), index() and key() format paths as Kubernetes does", async (t) => {
  t.equal(child("", "spec"), "spec");
  t.equal(child(index("spec.containers", 0), "name"), "spec.containers[0].name");
  t.equal(key("metadata.labels", "app/x"), "metadata.labels[app/x]");
});

t.test("splitPath() inverts joinPath()", async (t) => {
  const steps = ["spec", "containers", 0, "ports", 12, "name"];
  t.equal(joinPath(steps), "spec.containers[0].ports[12].name");
  t.same(splitPath(joinPath(steps)), steps);
  t.same(splitPath("metadata.labels[a.b/c]"), ["metadata", "labels", "a.b/c"]);
  t.same(splitPath(""), []);
});
