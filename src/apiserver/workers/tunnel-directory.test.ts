import { MessageChannel } from "node:worker_threads";
import t from "tap";
import type { LocalTunnels } from "../tunnels/tunnel-exchange.ts";
import { TunnelDirectory } from "./tunnel-directory.ts";

const closed = { at: "2025-01-01T00:00:00.000Z", reason: "the connection was closed" };

class Thread implements LocalTunnels {
  readonly calls: string[] = [];
  apply(change: Parameters<LocalTunnels["apply"]>[0]): void {
    this.calls.push(`${change.nodeName} ${change.closed === undefined ? "is open" : change.closed.reason}`);
  }
  replace(nodeName: string): void {
    this.calls.push(`replace ${nodeName}`);
  }
  connect(nodeName: string): void {
    this.calls.push(`connect ${nodeName}`);
  }
  take(): readonly string[] {
    return this.calls.splice(0);
  }
}

t.test("the thread in which a node opened its last tunnel has it", async (t) => {
  const [a, b, c] = [new Thread(), new Thread(), new Thread()];
  const directory = new TunnelDirectory(() => [a, b, c]);
  directory.publish(a, { nodeName: "n1", closed: undefined });
  t.same([a.take(), b.take(), c.take()], [[], ["n1 is open"], ["n1 is open"]]);
  directory.publish(b, { nodeName: "n1", closed: undefined });
  t.same([a.take(), b.take(), c.take()], [["replace n1", "n1 is open"], [], ["n1 is open"]]);
  directory.publish(a, { nodeName: "n1", closed });
  t.same([a.take(), b.take(), c.take()], [[], [], []], "the closed one was replaced");
  const { port1, port2 } = new MessageChannel();
  // Keeps the test running until the port closes.
  port2.ref();
  directory.connect("n1", port1);
  t.same(b.take(), ["connect n1"]);
  const started = new Thread();
  directory.sendAll(started);
  t.same(started.take(), ["n1 is open"]);
  directory.remove(b, closed.at);
  t.same([a.take(), c.take()], Array(2).fill(["n1 its thread of the API server ended"]));
  const end = new Promise((resolve) => port2.once("close", resolve));
  directory.connect("n1", port1);
  await end;
});
