import t from "tap";
import type { Pod, PodSpec } from "../api/core/pod.ts";
import { podKind } from "../api/core/pod-kind.ts";
import type { ApiObject, Kind } from "../api/kind.ts";
import type { RuntimeClass } from "../api/node/runtime-class.ts";
import { runtimeClassKind } from "../api/node/runtime-class-kind.ts";
import type { PriorityClass } from "../api/scheduling/priority-class.ts";
import { priorityClassKind } from "../api/scheduling/priority-class-kind.ts";
import { StatusError } from "../api/status.ts";
import { create } from "./create.ts";
import { fixture } from "./fixture.ts";
import { type PodClasses, podAdmission, podChangeAdmission } from "./pod-admission.ts";
import { storedPodClasses } from "./pod-classes.ts";

type Scope = Parameters<ReturnType<typeof podAdmission>>[0];
const scope = { group: "", namespace: "default" } as Scope;
const slow: PriorityClass = { metadata: { name: "slow" }, value: -5, preemptionPolicy: "Never" };
const heavy: RuntimeClass = { metadata: { name: "heavy" }, handler: "vm", overhead: { podFixed: { cpu: "1" } } };
const classes: PodClasses = {
  priority: { find: async (name) => (name === "slow" ? slow : undefined), list: async () => [slow] },
  runtime: { find: async (name) => (name === "heavy" ? heavy : undefined) },
};
const admit = podAdmission({ allowPrivileged: false, notReadySeconds: 300, unreachableSeconds: 60 }, classes);

async function refusal(spec: Partial<PodSpec>): Promise<unknown> {
  const pod: Pod = { metadata: { name: "web" }, spec: { containers: [], ...spec } };
  return await admit(scope, pod).catch((error: unknown) => (error instanceof StatusError ? error.message : error));
}

t.test("podAdmission() lets a pod stay a while on a node in trouble, unless the pod says itself", async (t) => {
  const plain: Pod = { spec: { containers: [] } };
  const admitted = (await admit(scope, plain)) as Pod;
  t.same(admitted.spec?.tolerations, [
    { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 },
    { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute", tolerationSeconds: 60 },
  ]);
  const tolerant: Pod = { spec: { containers: [], tolerations: [{ operator: "Exists" }] } };
  t.same(((await admit(scope, tolerant)) as Pod).spec?.tolerations, tolerant.spec?.tolerations, "nothing to add");
});

t.test("podAdmission() refuses privileged containers where the operator does not allow them", async (t) => {
  const container = { name: "a", image: "i", securityContext: { privileged: true } };
  const pod: Pod = { metadata: { name: "web" }, spec: { containers: [container], initContainers: [container] } };
  const refused = await admit(scope, pod).catch((error: unknown) => error);
  if (!(refused instanceof StatusError)) throw new Error("The pod was admitted");
  t.equal(refused.status.code, 422);
  t.same(
    refused.status.details?.causes?.map((cause) => cause.field),
    ["spec.initContainers[0].securityContext.privileged", "spec.containers[0].securityContext.privileged"],
  );
  const lenient = podAdmission({ allowPrivileged: true, notReadySeconds: 300, unreachableSeconds: 300 }, classes);
  t.ok(await lenient(scope, pod));
});

t.test("podAdmission() ranks a pod by its priority class", async (t) => {
  const ranked = (await admit(scope, { spec: { containers: [], priorityClassName: "slow" } } as Pod)) as Pod;
  t.match(ranked.spec, { priority: -5, preemptionPolicy: "Never" });
  const plain = (await admit(scope, { spec: { containers: [] } } as Pod)) as Pod;
  t.match(plain.spec, { priority: 0, preemptionPolicy: "PreemptLowerPriority" });
  t.match(await refusal({ priorityClassName: "none" }), /no PriorityClass with name none was found/);
  t.match(await refusal({ priority: 7 }), /priority \(7\) must not be provided .* computed 0 from/);
});

t.test("podAdmission() takes a pod's overhead from the class of its runtime", async (t) => {
  const pod = (await admit(scope, { spec: { containers: [], runtimeClassName: "heavy" } } as Pod)) as Pod;
  t.same(pod.spec?.overhead, { cpu: "1" });
  t.match(await refusal({ runtimeClassName: "none" }), /RuntimeClass "none" not found/);
  t.match(await refusal({ overhead: { cpu: "1" } }), /without corresponding RuntimeClass/);
  t.match(await refusal({ runtimeClassName: "heavy", overhead: { cpu: "2" } }), /doesn't match RuntimeClass/);
});

t.test("podChangeAdmission() fills in again what a change took away", async (t) => {
  const change = podChangeAdmission({ allowPrivileged: true, notReadySeconds: 300, unreachableSeconds: 60 });
  const previous: Pod = { spec: { containers: [], priority: 3 } };
  const next: Pod = { spec: { containers: [] } };
  const admitted = change(podKind as unknown as Kind, next as ApiObject, previous as ApiObject, false) as Pod;
  t.equal(admitted.spec?.priority, 3);
  t.equal(admitted.spec?.tolerations?.length, 2);
});

t.test("podChangeAdmission() refuses privileged containers that come to a pod later", async (t) => {
  const change = podChangeAdmission({ allowPrivileged: false, notReadySeconds: 300, unreachableSeconds: 60 });
  const debug = { name: "debug", image: "i", securityContext: { privileged: true } };
  const [plain, privileged]: readonly Pod[] = [
    { spec: { containers: [] } },
    { spec: { containers: [], ephemeralContainers: [debug] } },
  ];
  const kind = podKind as unknown as Kind;
  t.throws(() => change(kind, privileged as ApiObject, plain as ApiObject, true), /disallowed by cluster policy/);
  t.equal(change(kind, privileged as ApiObject, privileged as ApiObject, true), privileged);
});

t.test("storedPodClasses() finds what is stored", async (t) => {
  await using f = fixture();
  const stored = storedPodClasses(f.registries);
  await create(f.registries.of(priorityClassKind), f.scope(""), slow);
  await create(f.registries.of(runtimeClassKind), f.scope(""), heavy);
  t.match(await stored.priority.find("slow", f.scope()), { value: -5 });
  t.equal((await stored.priority.list(f.scope())).length, 1);
  t.match(await stored.runtime.find("heavy", f.scope()), { handler: "vm" });
  t.equal(await stored.runtime.find("none", f.scope()), undefined);
});
