import t from "tap";
import { silentLogger } from "../../../std/log/logger.ts";
import { FakeRuntime } from "../../../testing/agent/fake-runtime.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { PodCidrUpdater } from "./pod-cidr-updater.ts";

t.test("PodCidrUpdater sends the node's pod CIDR once, again after an error, and when it changes", async (t) => {
  const clock = new FakeClock();
  const fake = new FakeRuntime(clock);
  const sent = () =>
    fake.calls.map(
      ({ request }) => (request as { runtimeConfig: { networkConfig: object } }).runtimeConfig.networkConfig,
    );
  const network = new PodCidrUpdater({ runtime: fake.runtime, podCidr: "", clock, log: silentLogger });
  const stop = new AbortController();
  const running = network.run(stop.signal);
  network.nodeChanged({ metadata: { name: "n1" } });
  await clock.advance(60_000);
  t.same(sent(), [], "there is nothing to send yet");

  fake.fail("updateRuntimeConfig");
  network.nodeChanged({ spec: { podCIDR: "10.1.0.0/24", podCIDRs: ["10.1.0.0/24", "fd00::/64"] } });
  await clock.advance(60_000);
  network.nodeChanged({ spec: { podCIDR: "10.1.0.0/24", podCIDRs: ["10.1.0.0/24", "fd00::/64"] } });
  await clock.advance(60_000);
  const both = { podCidr: "10.1.0.0/24,fd00::/64" };
  t.same(sent(), [both, both], "refused, and taken");

  network.nodeChanged({ spec: { podCIDR: "10.2.0.0/24" } });
  network.nodeChanged({});
  await clock.advance(1000);
  t.same(sent().slice(2), [{ podCidr: "10.2.0.0/24" }], "a node keeps its addresses");
  stop.abort();
  await running;
});
