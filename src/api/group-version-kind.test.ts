import t from "tap";
import { builtinScheme } from "./builtin.ts";
import { goTypeOf, groupVersionKindOf, internalType, notRegistered, schemeFileOf } from "./group-version-kind.ts";

const expected = { group: "apps.svc.io", version: "v1", kind: "Deployment" };

t.test("kind and version that are absent are those expected, unless the group is another", async (t) => {
  const cases: readonly [object, object][] = [
    [{}, expected],
    [{ kind: "Scale" }, { ...expected, kind: "Scale" }],
    [{ apiVersion: "v1" }, { ...expected, group: "" }],
    [
      { apiVersion: "batch/v1", kind: "Job" },
      { group: "batch", version: "v1", kind: "Job" },
    ],
  ];
  for (const [value, found] of cases) t.same(groupVersionKindOf(value, expected), found, JSON.stringify(value));
  t.throws(() => groupVersionKindOf({ apiVersion: "a/b/c" }, expected), /unexpected GroupVersion string: a\/b\/c/);
});

t.test("messages name kinds by their Go types", async (t) => {
  const scheme = builtinScheme();
  t.equal(goTypeOf({ group: "", version: "v1", kind: "PodList" }, scheme), "v1.PodList");
  t.equal(goTypeOf({ group: "", version: "v1", kind: "None" }, scheme), undefined);
  t.equal(internalType("", "Pod"), "core.Pod");
  t.equal(
    notRegistered({ group: "", version: "v2", kind: "Pod" }, schemeFileOf("")),
    'no kind "Pod" is registered for version "v2" in scheme "pkg/api/legacyscheme/scheme.go:30"',
  );
});
