import t from "tap";
import { compareVersions } from "./version-order.ts";

t.test("compareVersions() puts stable versions first, then newer ones, and other names last", async (t) => {
  const preferred = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "bar", "foo1"];
  t.same(preferred.toReversed().sort(compareVersions), preferred);
  t.equal(compareVersions("v1", "v1"), 0);
});
