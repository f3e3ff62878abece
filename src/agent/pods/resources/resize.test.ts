import t from "tap";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { ResourceRequirements } from "../../../api/core/resources/schema.ts";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import type { PodServices } from "../pod-context.ts";
import { makePodCgroupLimits, maxLimits } from "./pod-cgroup-limits.ts";

type Policy = { readonly resourceName: string; readonly restartPolicy: string };

function podWith(resources: ResourceRequirements, resizePolicy: readonly Policy[] = []): Pod {
  return testPod("p", { containers: [{ name: "c", image: "busybox:1", resources, resizePolicy }] });
}

const less: ResourceRequirements = { requests: { memory: "32Mi" }, limits: { memory: "64Mi" } };
const more: ResourceRequirements = { requests: { memory: "48Mi" }, limits: { memory: "96Mi" } };

t.test(
  "resizePod() applies the new version's resources to running containers, and reports them in the status",
  async (t) => {
    await using harness = await podHarness();
    harness.manager.put(podWith(less));
    await harness.run(2);
    harness.manager.put(podWith(more));
    await harness.run(2);
    const [call] = harness.fake.calls.filter(({ method }) => method === "updateContainerResources");
    t.match(call?.request, { linux: { memoryLimitInBytes: BigInt(96 * 2 ** 20) } });
    const going = harness.statuses.find(({ status }) =>
      status.conditions?.some(({ type, status }) => type === "PodResizeInProgress" && status === "True"),
    );
    t.match(going?.status.containerStatuses, [{ allocatedResources: more.requests, resources: less }]);
    const after = harness.status("p");
    t.notOk(after?.conditions?.some(({ type }) => type.startsWith("PodResize")));
    t.match(after?.containerStatuses, [{ allocatedResources: more.requests, resources: more, restartCount: 0 }]);
  },
);

t.test("resizePod() keeps the resources if the node lacks capacity, and reports the reason", async (t) => {
  await using harness = await podHarness();
  let hasCapacity = false;
  (harness.services as { -readonly [K in keyof PodServices]: PodServices[K] }).admission = {
    admit: async () => undefined,
    adopt: () => undefined,
    resize: async () => (hasCapacity ? undefined : { reason: "Deferred", message: "full" }),
  };
  harness.manager.put(podWith(less));
  await harness.run(2);
  harness.manager.put(podWith(more));
  await harness.run(2);
  const pending = harness.status("p")?.conditions?.find(({ type }) => type === "PodResizePending");
  t.match(pending, { status: "True", reason: "Deferred", message: "full" });
  t.match(harness.status("p")?.containerStatuses, [{ allocatedResources: less.requests, resources: less }]);
  hasCapacity = true;
  harness.manager.onRuntimeChange("uid-p");
  await harness.run(2);
  t.match(harness.status("p")?.containerStatuses, [{ allocatedResources: more.requests, resources: more }]);
});

t.test("resizePod() restarts containers whose resizePolicy requires it", async (t) => {
  await using harness = await podHarness();
  const policy = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];
  harness.manager.put(podWith(less, policy));
  await harness.run(2);
  harness.manager.put(podWith(more, policy));
  await harness.run(3);
  t.ok(harness.events.some(({ message }) => message === "Container c resize requires restart"));
  t.match(harness.status("p")?.containerStatuses, [{ restartCount: 1, resources: more, state: { running: {} } }]);
  t.notOk(harness.fake.calls.some(({ method }) => method === "updateContainerResources"));
});

t.test("resizePod() restarts a container at once that waits after a crash", async (t) => {
  await using harness = await podHarness();
  harness.fake.programs.set("c", { exitAfterMs: 100, exitCode: 1 });
  harness.manager.put(podWith(less));
  await harness.run(36);
  const starts = () => harness.fake.calls.filter(({ method }) => method === "startContainer").length;
  const before = starts();
  await harness.run(3);
  t.equal(starts(), before, "the container waits");
  harness.manager.put(podWith(more));
  await harness.run(3);
  t.ok(starts() > before);
});

t.test("resizePod() does not change the memory of containers that may use swap, but restarts them", async (t) => {
  const swap = { limitedSwap: true, limitsSwap: true };
  const restart = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];
  const rows: readonly (readonly [
    settings: object,
    policies: readonly Policy[],
    to: ResourceRequirements,
    ok: boolean,
  ])[] = [
    [swap, [], more, false],
    [swap, restart, more, true],
    [swap, [], { ...less, limits: { memory: "96Mi" } }, true],
    [{ ...swap, limitsSwap: false }, [], more, true],
    [{ ...swap, limitedSwap: false }, [], more, true],
  ];
  for (const [settings, policies, to, ok] of rows) {
    await using harness = await podHarness();
    Object.assign(harness.services.settings.cpu, settings);
    harness.manager.put(podWith(less, policies));
    await harness.run(2);
    harness.manager.put(podWith(to, policies));
    await harness.run(3);
    const pending = harness.status("p")?.conditions?.find(({ type }) => type === "PodResizePending");
    const message = ok ? undefined : "In-place resize of containers with swap is not supported.";
    t.equal(pending?.message, message, JSON.stringify([settings, policies, to]));
    t.equal(pending?.reason, ok ? undefined : "Infeasible");
  }
});

const inPlace: readonly Policy[] = [];
const restart: readonly Policy[] = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];
const settings = { cpuCfsQuota: true, cpuCfsQuotaPeriodMs: 100, podMaxPids: 0 };

/** Records the memory limit of the pod's cgroup. */
function recordPodLimit(services: PodServices): { bytes: number | null | undefined } {
  const limit: { bytes: number | null | undefined } = { bytes: undefined };
  Object.assign(services, {
    cgroups: {
      ...services.cgroups,
      async apply(pod: Pod, before?: Pod) {
        const limits = makePodCgroupLimits(pod, settings);
        limit.bytes = (
          before === undefined ? limits : maxLimits(makePodCgroupLimits(before, settings), limits)
        ).memoryBytes;
      },
    },
  });
  return limit;
}

for (const [name, policy] of [
  ["in place", inPlace],
  ["with restarts", restart],
] as const) {
  for (const versions of [[more], [less, more], [more, less], [more, less, more], [more, less, more, less]]) {
    const limits = versions.map((version) => version.limits?.memory).join(", ");
    t.test(`resizePod() leaves pod and container at the newest limit: ${name}, 64Mi, ${limits}`, async (t) => {
      await using harness = await podHarness();
      const limit = recordPodLimit(harness.services);
      harness.manager.put(podWith(less, policy));
      await harness.run(2);
      for (const version of versions) {
        harness.manager.put(podWith(version, policy));
        await harness.run(25);
      }
      const newest = versions.at(-1)?.limits?.memory;
      t.match(harness.status("p")?.containerStatuses, [{ resources: { limits: { memory: newest } } }]);
      t.equal(limit.bytes, Number.parseInt(newest ?? "", 10) * 2 ** 20);
    });
  }
}

t.test("resizePod() sets the pod's limit also while its containers wait for a restart", async (t) => {
  await using harness = await podHarness();
  const limit = recordPodLimit(harness.services);
  harness.fake.programs.set("c", { exitAfterMs: 100, exitCode: 1 });
  harness.manager.put(podWith(more));
  await harness.run(8);
  harness.manager.put(podWith(less));
  await harness.run(2);
  t.equal(limit.bytes, 64 * 2 ** 20);
});
