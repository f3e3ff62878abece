import t from "tap";
import { FakeRuntime } from "../../testing/agent/fake-runtime.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { labels, observe } from "./observation.ts";
import { RuntimeError } from "./runtime.ts";

t.test("observe() uses the listing of a stopped sandbox whose status the runtime cannot report", async (t) => {
  const fake = new FakeRuntime(new FakeClock());
  const { runtime } = fake;
  const config = {
    metadata: { name: "web", uid: "u", namespace: "default", attempt: 3 },
    labels: { [labels.podUid]: "u" },
  };
  const { podSandboxId = "" } = await runtime.runPodSandbox({ config });
  const broken = new RuntimeError("UNKNOWN", "failed to get sandbox ip: check network namespace closed");
  fake.fail("podSandboxStatus", broken);
  await t.rejects(observe(runtime, "u"), broken, "a sandbox that may be running must have a status");
  const before = await observe(runtime, "u");
  await runtime.stopPodSandbox({ podSandboxId });
  fake.fail("podSandboxStatus", broken);
  const { sandboxes } = await observe(runtime, "u", before);
  t.match(sandboxes, [{ id: podSandboxId, attempt: 3, ready: false, ips: before.sandboxes[0]?.ips }]);
  fake.fail("podSandboxStatus", broken);
  t.match((await observe(runtime, "u")).sandboxes, [{ id: podSandboxId, ready: false, ips: [] }]);
  const away = new RuntimeError("UNAVAILABLE", "away");
  fake.fail("podSandboxStatus", away);
  await t.rejects(observe(runtime, "u"), away);
});
