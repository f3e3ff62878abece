import { test } from "tap";
import { createTestAgent } from "../testing/agent/flag-harness.ts";

test("startAgent(): the status of a running pod that does not change is not written again", async (t) => {
  await using agent = await createTestAgent("flag", {});
  await agent.start();
  agent.createPod("web");
  await agent.untilRunning("web");
  let turns = 0;
  const wait = () => agent.until("some turns have passed", () => ++turns % 400 === 0);
  await wait();
  const written = agent.api.objects.get("/api/v1/namespaces/default/pods/web")?.metadata.resourceVersion;
  await wait();
  t.equal(agent.api.objects.get("/api/v1/namespaces/default/pods/web")?.metadata.resourceVersion, written);
});
