import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { podHarness, testPod } from "../../testing/agent/pod-harness.ts";
import { stopAllPods } from "./stop-all-pods.ts";

for (const method of ["stopContainer", "stopPodSandbox"]) {
  t.test(`stopAllPods() stops the other pods when a call of ${method} fails`, async (t) => {
    await using at = await podHarness();
    for (const name of ["a", "b", "c"]) at.manager.put(testPod(name));
    await at.run(3);
    at.fake.fail(method);
    const uids = await stopAllPods(at.fake.runtime, 1, silentLogger);
    t.same([...uids].sort(), ["uid-a", "uid-b", "uid-c"]);
    const called = (name: string) => at.fake.calls.filter((call) => call.method === name).length;
    t.equal(called("stopContainer"), 3);
    t.equal(called("stopPodSandbox"), 3);
    t.ok([...at.fake.sandboxes.values()].filter(({ ready }) => ready).length <= 1);
  });
}

t.test("stopAllPods() stops sandboxes when containers cannot be listed", async (t) => {
  await using at = await podHarness();
  at.manager.put(testPod("a"));
  await at.run(3);
  at.fake.fail("listContainers");
  t.same([...(await stopAllPods(at.fake.runtime, 1, silentLogger))], ["uid-a"]);
});
