import t from "tap";
import { builtinKinds } from "../../api/builtin.ts";
import type { ResourceQuota } from "../../api/core/resource-quota/schema.ts";
import { formatResourceList } from "../../api/core/resources/quantities.ts";
import type { Kind } from "../../api/kind.ts";
import type { Client } from "../../client/client.ts";
import { calculateUsage, countedBuiltinKinds } from "./counted-kinds.ts";

t.test("calculateUsage() leaves out the resources of kinds that cannot be listed, and counts the others", async (t) => {
  const problem = new Error("conversion webhook failed");
  const list = async ({ plural }: Kind) => {
    if (plural === "configmaps") throw problem;
    return { items: [{ metadata: { name: "a", namespace: "ns" } }], resourceVersion: "1" };
  };
  const client: Partial<Client> = { list: list as never };
  const hard = { configmaps: "5", secrets: "5" };
  const quota: ResourceQuota = { metadata: { name: "q", namespace: "ns" }, spec: { hard } };
  const { signal } = new AbortController();
  const kinds = countedBuiltinKinds(builtinKinds);
  const { used, failure } = await calculateUsage(quota, kinds, client as Client, signal);
  t.same(formatResourceList(used), { secrets: "1" });
  t.equal(failure?.error, problem);
});
