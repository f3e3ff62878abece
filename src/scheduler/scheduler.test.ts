import t from "tap";
import type { Node } from "../api/core/node/schema.ts";
import type { Pod } from "../api/core/pod/schema.ts";
import type { Kind } from "../api/kind.ts";
import type { Client, ClientWatchEvent, ObjectName } from "../client/client.ts";
import { createSharedInformers } from "../client/informer/shared-informers.ts";
import { seededRandom } from "../std/crypto/random.ts";
import { silentLogger } from "../std/log/logger.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { until } from "../testing/std/until.ts";
import { runScheduler } from "./scheduler.ts";

type Taint = NonNullable<NonNullable<Node["spec"]>["taints"]>[number];

const TAINT: Taint = { key: "a", value: "b", effect: "NoSchedule" };

function node(taints: readonly Taint[]): Node {
  return {
    metadata: { name: "n" },
    spec: { taints },
    status: { conditions: [{ type: "Ready", status: "True" }], allocatable: { cpu: "2", memory: "4Gi", pods: "9" } },
  };
}

function pod(name: string): Pod {
  return { metadata: { name, namespace: "ns", uid: name }, spec: { containers: [{ name: "c" }] } };
}

/** Serves one node and some pods, and records which pods are bound. */
class FakeServer {
  readonly bound: string[] = [];
  readonly #objects: Readonly<Record<string, readonly unknown[]>>;
  readonly #waiting = new Map<string, (event: ClientWatchEvent<never>) => void>();

  constructor(nodes: readonly Node[], pods: readonly Pod[]) {
    this.#objects = { nodes, pods };
  }

  sendEvent(plural: string, event: ClientWatchEvent<unknown>): void {
    this.#waiting.get(plural)?.(event as ClientWatchEvent<never>);
  }

  get client(): Client {
    const client: Partial<Client> = {
      list: async (kind: Kind) => ({
        items: (this.#objects[kind.plural] ?? []) as never[],
        resourceVersion: "1",
      }),
      watch: (kind: Kind, _query: unknown, signal: AbortSignal) => this.#watch(kind.plural, signal) as never,
      create: async (_kind: unknown, object: unknown) => object as never,
      patch: async () => ({}) as never,
      createSubresource: async (_kind: unknown, { name }: ObjectName) => this.bound.push(name),
    };
    return client as Client;
  }

  async *#watch(plural: string, signal: AbortSignal): AsyncGenerator<ClientWatchEvent<never>> {
    for (;;) {
      yield await new Promise<ClientWatchEvent<never>>((resolve, reject) => {
        this.#waiting.set(plural, resolve);
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    }
  }
}

t.test("runScheduler() retries unschedulable pods on each change of a node", async (t) => {
  const clock = new FakeClock();
  const server = new FakeServer([node([TAINT])], [pod("p"), pod("q")]);
  const stop = new AbortController();
  const log = silentLogger;
  const random = seededRandom(1);
  const running = runScheduler({
    client: server.client,
    informers: createSharedInformers({ client: server.client, clock, random, log }, stop.signal),
    clock,
    random,
    log,
    signal: stop.signal,
  });
  await clock.advance(1000);
  t.same(server.bound, []);
  server.sendEvent("nodes", { type: "MODIFIED", object: node([TAINT, { ...TAINT, key: "c" }]) });
  await clock.advance(1000);
  t.same(server.bound, [], "still unschedulable");
  server.sendEvent("nodes", { type: "MODIFIED", object: node([]) });
  // The scheduler gives way to other work between two pods, in real time.
  await until("both pods are bound", () => server.bound.length === 2, { wait: () => clock.advance(1000) });
  t.same([...server.bound].sort(), ["p", "q"]);
  stop.abort(new Error("stop"));
  await running;
});
