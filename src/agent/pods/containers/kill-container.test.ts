import t from "tap";
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { type Harness, podHarness, testPod } from "../../../testing/agent/pod-harness.ts";

const image = { image: "busybox:1", imagePullPolicy: "IfNotPresent" } as const;

function deleted(pod: Pod, seconds: number): Pod {
  const deletion = { deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: seconds };
  return { ...pod, metadata: { ...pod.metadata, ...deletion } };
}

/** Seconds between the stop signal and the kill, by container. */
function stopTimeouts({ fake }: Harness): Readonly<Record<string, number>> {
  const stops = fake.calls.filter(({ method }) => method === "stopContainer");
  const requests = stops.map(({ request }) => request as { containerId: string; timeout: bigint });
  const name = (id: string) => fake.containers.get(id)?.status.metadata?.name ?? "";
  return Object.fromEntries(requests.map(({ containerId, timeout }) => [name(containerId), Number(timeout)]));
}

for (const { grace, hookSeconds, expected } of [
  { grace: 0, hookSeconds: undefined, expected: 2 },
  { grace: 1, hookSeconds: undefined, expected: 2 },
  { grace: 2, hookSeconds: undefined, expected: 2 },
  { grace: 10, hookSeconds: undefined, expected: 10 },
  { grace: 10, hookSeconds: 4, expected: 6 },
  { grace: 10, hookSeconds: 9, expected: 2 },
  { grace: 10, hookSeconds: 60, expected: 2 },
]) {
  const what = `a grace period of ${grace} s and a hook of ${hookSeconds ?? 0} s`;
  t.test(`killContainer() leaves the container ${expected} s with ${what}`, async (t) => {
    await using harness = await podHarness();
    const lifecycle = hookSeconds === undefined ? {} : { lifecycle: { preStop: { sleep: { seconds: hookSeconds } } } };
    const pod = testPod("web", { containers: [{ name: "c", ...image, ...lifecycle }] });
    harness.manager.put(pod);
    await harness.run(2);
    harness.manager.put(deleted(pod, grace));
    await harness.run(15);
    t.same(stopTimeouts(harness), { c: expected });
    t.notOk(harness.events.some(({ reason }) => reason === "FailedPreStopHook"));
  });
}

t.test("PodWorker leaves the containers of a forcibly deleted pod 2 s", async (t) => {
  await using harness = await podHarness();
  const pod = testPod("web", { terminationGracePeriodSeconds: 30 });
  harness.manager.put(pod);
  await harness.run(2);
  harness.manager.put(deleted(pod, 0));
  harness.manager.delete("uid-web");
  await harness.run(2);
  t.same(Object.values(stopTimeouts(harness)), [2]);
});

t.test("PodWorker runs the preStop hooks of all containers at once, and stops sidecars in their turn", async (t) => {
  await using harness = await podHarness();
  const { fake, clock, events } = harness;
  const container = (name: string, seconds: number): Container => ({
    name,
    ...image,
    lifecycle: { preStop: { sleep: { seconds } } },
  });
  const sidecar = (name: string, seconds: number): Container => ({
    ...container(name, seconds),
    restartPolicy: "Always",
  });
  const pod = testPod("web", {
    initContainers: [sidecar("first", 1), sidecar("second", 9)],
    containers: [container("main", 4)],
  });
  for (const name of ["main", "first", "second"]) fake.programs.set(name, { stopAfterMs: 2_000 });
  harness.manager.put(pod);
  await harness.run(4);
  harness.manager.put(deleted(pod, 30));
  const began = clock.monotonic();
  await harness.run(1);
  t.equal(events.filter(({ reason }) => reason === "Killing").length, 3);
  await harness.run(30);
  const finished = (name: string) => Number(fake.containersNamed(name)[0]?.status.finishedAt) / 1e6 - began;
  const times = ["main", "second", "first"].map((name) =>
    Math.round((finished(name) - clock.now() + clock.monotonic()) / 1000),
  );
  t.same(times, [6, 11, 13]);
  t.same(stopTimeouts(harness), { main: 26, second: 21, first: 19 });
});

t.test("PodWorker stops sidecars without waiting for an init container", async (t) => {
  await using harness = await podHarness();
  const { fake } = harness;
  const initContainers = [
    { name: "side", ...image, restartPolicy: "Always" as const },
    { name: "init", ...image },
  ];
  const pod = testPod("web", { initContainers, containers: [{ name: "main", ...image }] });
  fake.programs.set("init", { stopAfterMs: 8_000 });
  harness.manager.put(pod);
  await harness.run(4);
  harness.manager.put(deleted(pod, 30));
  await harness.run(3);
  const states = ["side", "init"].map((name) => fake.containersNamed(name)[0]?.status.state);
  t.same(states, ["CONTAINER_EXITED", "CONTAINER_RUNNING"]);
});
