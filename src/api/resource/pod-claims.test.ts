import t from "tap";
import type { Pod } from "../core/pod/schema.ts";
import { explainForeignClaim, isReservedFor, podConsumer, resolvePodClaim } from "./pod-claims.ts";

const pod: Pod = {
  metadata: { name: "web", namespace: "shop", uid: "1" },
  status: { resourceClaimStatuses: [{ name: "made", resourceClaimName: "web-made-x" }, { name: "skipped" }] },
};

t.test("resolvePodClaim() returns the claim's name, or why there is none", async (t) => {
  const resourceClaimTemplateName = "t";
  t.same(resolvePodClaim(pod, { name: "a", resourceClaimName: "c" }), { name: "c", isOwned: false });
  t.same(resolvePodClaim(pod, { name: "made", resourceClaimTemplateName }), { name: "web-made-x", isOwned: true });
  t.same(resolvePodClaim(pod, { name: "skipped", resourceClaimTemplateName }), { name: undefined, isOwned: true });
  const pending = { problem: 'pod "shop/web": ResourceClaim not created yet', isPending: true };
  t.same(resolvePodClaim(pod, { name: "new", resourceClaimTemplateName }), pending);
  const unknown = 'pod "shop/web", spec.resourceClaim "x": none of the supported fields are set';
  t.same(resolvePodClaim(pod, { name: "x" }), { problem: unknown, isPending: false });
});

t.test("explainForeignClaim() compares the claim's controller with the pod", async (t) => {
  const owner = { apiVersion: "v1", kind: "Pod", name: "web", uid: "1", controller: true };
  const claim = (namespace: string, ...ownerReferences: (typeof owner)[]) => ({
    metadata: { name: "c", namespace, ownerReferences },
  });
  t.equal(explainForeignClaim(pod, claim("shop", owner)), undefined);
  for (const foreign of [
    claim("shop"),
    claim("other", owner),
    claim("shop", { ...owner, uid: "2" }),
    claim("shop", { ...owner, controller: false }),
  ]) {
    const { namespace } = foreign.metadata;
    const expected = `ResourceClaim ${namespace}/c was not created for pod shop/web (pod is not owner)`;
    t.equal(explainForeignClaim(pod, foreign), expected);
  }
});

t.test("isReservedFor() finds the pod by its UID", async (t) => {
  t.equal(isReservedFor(pod, { metadata: {}, status: { reservedFor: [podConsumer(pod)] } }), true);
  const other = { ...podConsumer(pod), uid: "2" };
  t.equal(isReservedFor(pod, { metadata: {}, status: { reservedFor: [other] } }), false);
  t.equal(isReservedFor(pod, { metadata: {} }), false);
});
