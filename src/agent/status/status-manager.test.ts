import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { StatusManager } from "./status-manager.ts";

interface Server {
  readonly calls: string[];
  answer: () => unknown;
}

function manager(server: Server): StatusManager {
  const call = async (name: string): Promise<unknown> => {
    server.calls.push(name);
    return server.answer();
  };
  const client = { patch: () => call("patch"), delete: () => call("delete") } as unknown as Client;
  return new StatusManager({ client, clock: new FakeClock(), random: seededRandom(1), log: silentLogger });
}

const pod: Pod = {
  metadata: { name: "web", namespace: "default", uid: "u1" },
  spec: { containers: [] },
  status: { phase: "Pending" },
};

t.test("StatusManager sends one patch of a changed status, and none of an equal one", async (t) => {
  const server: Server = { calls: [], answer: () => ({ status: { phase: "Running" } }) };
  await using status = manager(server);
  status.setStatus(pod, { phase: "Running" });
  await status.flush(1000);
  status.setStatus(pod, { phase: "Running" });
  await status.flush(1000);
  t.same(server.calls, ["patch"]);
});

t.test(
  "StatusManager deletes the object of a deleted pod once its containers have stopped, and sends nothing more",
  async (t) => {
    const server: Server = { calls: [], answer: () => ({ status: { phase: "Succeeded" } }) };
    await using status = manager(server);
    status.setStatus(pod, { phase: "Succeeded" });
    status.onPodFinished(pod);
    await status.flush(1000);
    t.same(server.calls, ["patch", "delete"]);
    status.setStatus(pod, { phase: "Failed" });
    await status.flush(1000);
    t.same(server.calls, ["patch", "delete"], "no request for a removed pod");
  },
);

t.test("StatusManager stops writing the status of a pod that is removed during a write", async (t) => {
  const server: Server = { calls: [], answer: () => undefined };
  await using status = manager(server);
  server.answer = () => {
    status.onPodDelete("u1");
    throw new StatusError(403, "Forbidden", "no relationship found");
  };
  status.setStatus(pod, { phase: "Running" });
  await status.flush(1000);
  status.setStatus(pod, { phase: "Failed" });
  await status.flush(1000);
  t.same(server.calls, ["patch"]);
});
