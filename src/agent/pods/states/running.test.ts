import t from "tap";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";

t.test("no container starts before the network policies of the pod are in effect", async (t) => {
  await using h = await podHarness();
  const policies = Promise.withResolvers<void>();
  const calls: string[] = [];
  let isEnforced = false;
  Object.assign(h.services, {
    networkPolicies: {
      setPod(pod: { readonly metadata?: { readonly name?: string } }, ips: readonly string[]) {
        calls.push(`${pod.metadata?.name} ${ips.join()}`);
        return ips.length === 0 || isEnforced ? undefined : policies.promise;
      },
    },
  });
  h.manager.put(testPod("web"));
  await h.run(5);
  const containers = () => h.fake.calls.filter(({ method }) => method === "createContainer").length;
  t.equal(h.fake.calls.filter(({ method }) => method === "runPodSandbox").length, 1);
  t.equal(containers(), 0);
  t.match(calls.at(-1), /^web \d+\.\d+\.\d+\.\d+$/, "with the address of its sandbox");
  isEnforced = true;
  policies.resolve();
  await h.run(2);
  t.equal(containers(), 1);
  t.equal(h.status("web")?.phase, "Running");
});

t.test("a pod that waits for its network policies can be deleted", async (t) => {
  await using h = await podHarness();
  Object.assign(h.services, {
    networkPolicies: {
      setPod: (_pod: unknown, ips: readonly string[], signal: AbortSignal) =>
        ips.length === 0
          ? undefined
          : new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
    },
  });
  const pod = testPod("web");
  h.manager.put(pod);
  await h.run(3);
  h.manager.put({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } });
  await h.run(3);
  t.ok(h.finished.includes("web"));
  t.equal(h.fake.calls.filter(({ method }) => method === "createContainer").length, 0);
});
