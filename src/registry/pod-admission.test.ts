import t from "tap";
import type { Pod } from "../api/core/pod.ts";
import { StatusError } from "../api/status.ts";
import { podAdmission } from "./pod-admission.ts";

type Scope = Parameters<ReturnType<typeof podAdmission>>[0];
const scope = { group: "", namespace: "default" } as Scope;
const admit = podAdmission({ allowPrivileged: false, notReadySeconds: 300, unreachableSeconds: 60 });

t.test("podAdmission() lets a pod stay a while on a node in trouble, unless the pod says itself", async (t) => {
  const plain: Pod = { spec: { containers: [] } };
  const admitted = (await admit(scope, plain)) as Pod;
  t.same(admitted.spec?.tolerations, [
    { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 },
    { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute", tolerationSeconds: 60 },
  ]);
  const tolerant: Pod = { spec: { containers: [], tolerations: [{ operator: "Exists" }] } };
  t.equal(await admit(scope, tolerant), undefined, "nothing to add");
});

t.test("podAdmission() refuses privileged containers where the operator does not allow them", async (t) => {
  const container = { name: "a", image: "i", securityContext: { privileged: true } };
  const pod: Pod = { metadata: { name: "web" }, spec: { containers: [container], initContainers: [container] } };
  const refused = await admit(scope, pod).catch((error: unknown) => error);
  if (!(refused instanceof StatusError)) throw new Error("The pod was admitted");
  t.equal(refused.status.code, 422);
  t.same(
    refused.status.details?.causes?.map((cause) => cause.field),
    ["spec.containers[0].securityContext.privileged", "spec.initContainers[0].securityContext.privileged"],
  );
  const lenient = podAdmission({ allowPrivileged: true, notReadySeconds: 300, unreachableSeconds: 300 });
  t.ok(await lenient(scope, pod));
});
