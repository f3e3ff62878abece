import t from "tap";
import type { Taint } from "../api/core/node.ts";
import { fixture } from "./fixture.ts";
import { withNotReadyTaint } from "./node-admission.ts";

t.test("withNotReadyTaint() taints new nodes once, whichever way the taint is spelt", async (t) => {
  await using f = fixture();
  const notReady: Taint = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };
  const other: Taint = { key: "dedicated", value: "till", effect: "NoExecute" };
  const admitted = (taints?: readonly Taint[]) =>
    withNotReadyTaint(f.scope(""), { metadata: { name: "n" }, spec: { taints } } as object);
  t.match(await admitted(), { spec: { taints: [notReady] } });
  t.match(await admitted([other]), { spec: { taints: [other, notReady] } });
  t.equal(await admitted([notReady]), undefined);
  t.equal(await admitted([{ ...notReady, key: "node.svc.io/not-ready" }]), undefined);
  t.match(await admitted([{ ...notReady, effect: "NoExecute" }]), {
    spec: { taints: [{ effect: "NoExecute" }, notReady] },
  });
});
