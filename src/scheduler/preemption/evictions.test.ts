import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { NodeInfo } from "../cache/node-info.ts";
import { Nominator } from "../cache/nominator.ts";
import { PodInfo } from "../cache/pod-info.ts";
import { Evictions } from "./evictions.ts";

const podOf = (name: string): PodInfo =>
  new PodInfo({ metadata: { name, namespace: "default", uid: name }, spec: { containers: [] } } as Pod);

/** Evicts three victims of which `absent` do not exist any more. Returns what happened in order. */
async function evict(absent: readonly string[]): Promise<readonly string[]> {
  const log: string[] = [];
  const send = async (_: unknown, { name }: { readonly name: string }): Promise<void> => {
    if (absent.includes(name)) throw new StatusError(404, "NotFound", `no pod ${name}`);
  };
  const client: Pick<Client, "patch" | "delete"> = {
    patch: send as never,
    delete: (async (kind: unknown, target: { readonly name: string }) => {
      await send(kind, target);
      log.push(`delete ${target.name}${evictions.isPreempting("p") ? "" : ", released"}`);
    }) as never,
  };
  const evictions = new Evictions({
    client: client as Client,
    clock: new FakeClock(),
    log: silentLogger,
    nominator: new Nominator(),
    signal: new AbortController().signal,
    recordPreempted: () => undefined,
    onEvict: () => undefined,
    rejectBinding: () => false,
    activate: (uid) => log.push(`activate ${uid}`),
    retryLater: (uid) => log.push(`retry ${uid}`),
  });
  const node = new NodeInfo("a");
  await evictions.evict(podOf("p"), { node, pods: ["x", "y", "z"].map(podOf), violations: 0 });
  return log;
}

t.test("the last victim is deleted when the pod may be scheduled again", async (t) => {
  t.same(await evict([]), ["delete x", "delete y", "delete z, released"]);
  t.same(await evict(["x"]), ["delete y", "delete z, released"]);
});

t.test("a pod whose last victim has gone already is scheduled without an event", async (t) => {
  t.same(await evict(["z"]), ["delete x", "delete y", "activate p"]);
  t.same(await evict(["x", "y", "z"]), ["activate p"]);
});
