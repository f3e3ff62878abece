import t from "tap";
import { nodeKind } from "../../../api/core/node/kind.ts";
import type { Taint } from "../../../api/core/node/schema.ts";
import { runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { taintNodesByCondition } from "./taint-nodes-by-condition.ts";

t.test("taintNodesByCondition() adds the not-ready taint to a new node that has neither alias of it", async (t) => {
  const notReady: Taint = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };
  const other: Taint = { key: "dedicated", value: "till", effect: "NoExecute" };
  const taintsAfter = async (taints?: readonly Taint[]) => {
    const node = { metadata: { name: "n" }, spec: { ...(taints === undefined ? {} : { taints }) } };
    return (await runPlugin(taintNodesByCondition(), nodeKind, node)).object.spec?.taints;
  };
  t.same(await taintsAfter(), [notReady]);
  t.same(await taintsAfter([other]), [other, notReady]);
  t.same(await taintsAfter([notReady]), [notReady]);
  t.same(await taintsAfter([{ ...notReady, key: "node.svc.io/not-ready" }]), [
    { ...notReady, key: "node.svc.io/not-ready" },
  ]);
  t.same(await taintsAfter([{ ...notReady, effect: "NoExecute" }]), [{ ...notReady, effect: "NoExecute" }, notReady]);
});
