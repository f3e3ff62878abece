import { test } from "tap";
import { testAgent } from "../testing/agent/flag-harness.ts";

test("startAgent: the status of a pod that runs and does not change is written no more", async (t) => {
  await using agent = await testAgent("flag", {});
  await agent.start();
  agent.pod("web");
  await agent.running("web");
  let turns = 0;
  const calm = () => agent.until("some turns have passed", () => ++turns % 400 === 0);
  await calm();
  const written = agent.api.objects.get("/api/v1/namespaces/default/pods/web")?.metadata.resourceVersion;
  await calm();
  t.equal(agent.api.objects.get("/api/v1/namespaces/default/pods/web")?.metadata.resourceVersion, written);
});
