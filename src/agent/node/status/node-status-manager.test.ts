import t from "tap";
import { createClient } from "../../../client/api-client.ts";
import { systemRandom } from "../../../std/crypto/random.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { FakeApi } from "../../../testing/agent/fake-api.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { defaultAgentConfig } from "../../options.ts";
import { NodeStatusManager } from "./node-status-manager.ts";

/** The events of a node that starts with this boot ID and was last reported with that one. */
async function eventsOf(bootId: string, before: string | undefined): Promise<readonly string[]> {
  const api = new FakeApi();
  const statusOf = (bootID: string) => ({
    nodeInfo: { bootID },
    conditions: [{ type: "Ready", status: "True" as const, reason: "KubeletReady", message: "" }],
  });
  if (before !== undefined) {
    const node = { kind: "Node", metadata: { name: "n1" }, spec: {}, status: statusOf(before) };
    api.put("/api/v1/nodes/n1", node);
  }
  const stop = new AbortController();
  const events: string[] = [];
  const manager = new NodeStatusManager({
    client: createClient({ transport: api.transport }),
    clock: new FakeClock(),
    random: systemRandom,
    log: silentLogger,
    nodeName: "n1",
    config: defaultAgentConfig("n1").node,
    machineLabels: {},
    status: async () => statusOf(bootId) as never,
    recordEvent: (...event) => void events.push(event.join(" ")),
    signal: stop.signal,
  });
  const running = manager.run();
  await manager.ready;
  stop.abort();
  await running;
  return events;
}

t.test("NodeStatusManager records Rebooted when the boot ID has changed since the last report", async (t) => {
  t.same(await eventsOf("b", "a"), ["Warning Rebooted Node n1 has been rebooted, boot id: b"]);
  t.same(await eventsOf("b", "b"), []);
  t.same(await eventsOf("b", undefined), ["Normal NodeReady Node n1 status is now: NodeReady"]);
  t.same(await eventsOf("b", ""), [], "a node that was never reported");
});

t.test("NodeStatusManager reads a registered node before it would create it, unless the gate is on", async (t) => {
  for (const readsNodeFirst of [true, false]) {
    const api = new FakeApi();
    api.put("/api/v1/nodes/n1", { kind: "Node", metadata: { name: "n1", uid: "u" }, spec: {} });
    const methods: string[] = [];
    const stop = new AbortController();
    const manager = new NodeStatusManager({
      client: createClient({
        transport: (request) => {
          methods.push(request.method);
          return api.transport(request);
        },
      }),
      clock: new FakeClock(),
      random: systemRandom,
      log: silentLogger,
      nodeName: "n1",
      config: { ...defaultAgentConfig("n1").node, readsNodeFirst },
      machineLabels: {},
      status: async () => ({ conditions: [{ type: "Ready", status: "True" as const }] }),
      recordEvent: () => undefined,
      signal: stop.signal,
    });
    const running = manager.run();
    await manager.ready;
    stop.abort();
    await running;
    t.equal(methods[0], readsNodeFirst ? "GET" : "POST");
  }
});
