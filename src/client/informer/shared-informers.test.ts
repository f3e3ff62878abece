import t from "tap";
import { nodeKind } from "../../api/core/node/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { Client } from "../client.ts";
import { createSharedInformers, waitForCacheSync } from "./shared-informers.ts";

t.test("of() starts one informer for each kind, which the disposal stops", async (t) => {
  const listed: string[] = [];
  const client: Partial<Client> = {
    list: async (kind) => {
      listed.push(kind.plural);
      return { items: [], resourceVersion: "1" };
    },
    watch: (_kind, _query, signal) => waitForAbort(signal),
  };
  const stop = new AbortController();
  const deps = { client: client as Client, clock: new FakeClock(), random: seededRandom(1), log: silentLogger };
  const informers = createSharedInformers(deps, stop.signal);
  t.equal(informers.of(podKind), informers.of(podKind));
  await Promise.all([informers.of(podKind).synced, informers.of(nodeKind).synced]);
  t.same(listed, ["pods", "nodes"]);
  await informers[Symbol.asyncDispose]();
});

t.test("waitForCacheSync() ends with the first lists, with a failure, and when the signal aborts", async (t) => {
  const stop = new AbortController();
  const [listed, pending] = [{ synced: Promise.resolve() }, { synced: Promise.reject(new Error("no list")) }];
  await waitForCacheSync([listed, listed], stop.signal);
  await t.rejects(waitForCacheSync([listed, pending], stop.signal), { message: "no list" });
  stop.abort();
  await waitForCacheSync([listed, pending], stop.signal);
});

async function* waitForAbort(signal: AbortSignal): AsyncGenerator<never> {
  await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}
