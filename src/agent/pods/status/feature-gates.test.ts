import t from "tap";
import type { Container } from "../../../api/core/container/schema.ts";
import type { PodStatus } from "../../../api/core/pod/schema.ts";
import { type Harness, podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import type { PodSettings } from "../pod-context.ts";

const withCpu = (cpu: string): { readonly containers: readonly Container[] } => ({
  containers: [
    {
      name: "c",
      image: "busybox:1",
      imagePullPolicy: "IfNotPresent",
      resources: { limits: { cpu }, requests: { cpu } },
    },
  ],
});

for (const inPlaceResize of [true, false]) {
  t.test(`InPlacePodVerticalScaling=${inPlaceResize} decides whether running containers are resized`, async (t) => {
    await using at = await podHarness();
    Object.assign(at.services.settings as { -readonly [K in keyof PodSettings]: PodSettings[K] }, { inPlaceResize });
    at.manager.put(testPod("web", withCpu("100m")));
    await at.run(3);
    at.manager.put(testPod("web", withCpu("200m")));
    await at.run(3);
    const updates = at.fake.calls.filter(({ method }) => method === "updateContainerResources");
    t.equal(updates.length > 0, inPlaceResize);
    const [status] = at.status("web")?.containerStatuses ?? [];
    t.equal(status?.state?.running !== undefined, true);
    t.equal(status?.resources !== undefined, inPlaceResize);
    t.equal(status?.allocatedResources !== undefined, inPlaceResize);
  });
}

const RESIZE_CONDITION = /^PodResize/;
const settle = async (at: Harness, cpu: string, inPlaceResize: boolean, status?: PodStatus): Promise<PodStatus> => {
  Object.assign(at.services.settings as object, { inPlaceResize });
  at.fake.calls.length = 0;
  at.manager.put({ ...testPod("web", withCpu(cpu)), ...(status && { status }) });
  await at.run(3);
  return at.status("web") ?? {};
};
const countUpdates = (at: Harness): number =>
  at.fake.calls.filter(({ method }) => method === "updateContainerResources").length;
/** As the API server stores it. */
const withoutAllocated = ({ containerStatuses = [], ...status }: PodStatus): PodStatus => ({
  ...status,
  containerStatuses: containerStatuses.map(({ allocatedResources: _, ...rest }) => rest),
});

t.test("a resize of a pod that ran before the agent waits until InPlacePodVerticalScaling is on", async (t) => {
  await using at = await podHarness();
  const first = withoutAllocated(await settle(at, "100m", true));
  at.restart();
  const unchanged = await settle(at, "100m", true, first);
  t.equal(countUpdates(at), 0, "the reported resources are those of the spec");
  t.notOk(unchanged.conditions?.some(({ type }) => RESIZE_CONDITION.test(type)));
  at.restart();
  const off = await settle(at, "200m", false, first);
  t.equal(countUpdates(at), 0, "off");
  t.notOk(off.conditions?.some(({ type }) => RESIZE_CONDITION.test(type)));
  t.equal(off.containerStatuses?.[0]?.resources, undefined);
  at.restart();
  const on = await settle(at, "200m", true, off);
  t.equal(countUpdates(at), 1, "on again: the resources of the container are not known");
  t.same(on.containerStatuses?.[0]?.resources?.limits, { cpu: "200m" });
  at.restart();
  await settle(at, "200m", true, withoutAllocated(on));
  t.equal(countUpdates(at), 0, "the reported resources are those of the spec");
});

t.test("SupplementalGroupsPolicy=false refuses a strict policy that the runtime supports", async (t) => {
  for (const supplementalGroupsPolicy of [true, false]) {
    await using at = await podHarness();
    Object.assign(at.services.settings as object, { supplementalGroupsPolicy });
    const { status } = at.fake.runtime;
    Object.assign(at.fake.runtime, {
      status: async (...args: Parameters<typeof status>) => ({
        ...(await status(...args)),
        features: { supplementalGroupsPolicy: true },
      }),
    });
    at.manager.put(testPod("web", { securityContext: { supplementalGroupsPolicy: "Strict" } }));
    await at.run(3);
    t.equal(at.status("web")?.reason, supplementalGroupsPolicy ? undefined : "SupplementalGroupsPolicyNotSupported");
  }
});

t.test("PodReadyToStartContainersCondition and PodObservedGenerationTracking decide about conditions", async (t) => {
  for (const on of [true, false]) {
    await using at = await podHarness();
    Object.assign(at.services.settings as object, { readyToStartCondition: on, observedGeneration: on });
    const pod = testPod("web");
    at.manager.put({ ...pod, metadata: { ...pod.metadata, generation: 3 } });
    await at.run(3);
    const { conditions = [], observedGeneration } = at.status("web") ?? {};
    t.equal(
      conditions.some(({ type }) => type === "PodReadyToStartContainers"),
      on,
    );
    t.equal(observedGeneration, on ? 3 : undefined);
    t.ok(conditions.every((condition) => condition.observedGeneration === observedGeneration));
  }
});
