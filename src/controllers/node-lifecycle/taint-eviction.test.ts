import t from "tap";
import type { Taint } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Toleration } from "../../api/core/pod-spec/affinity.ts";
import type { Client } from "../../client/client.ts";
import type { EventRecorder } from "../../client/events/event-recorder.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeInformers } from "../../testing/client/fake-informers.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { defaultControllerOptions } from "../controller-options.ts";
import { TaintEvictionController, toleratedMs } from "./taint-eviction.ts";

const GONE: Taint = { key: "gone", effect: "NoExecute" };
const DB: Taint = { key: "for", value: "db", effect: "NoExecute" };

const exists = (key: string, seconds?: number): Toleration => ({
  key,
  operator: "Exists",
  ...(seconds === undefined ? {} : { tolerationSeconds: seconds }),
});

t.test("toleratedMs() returns the shortest toleration of all taints", (t) => {
  const cases: readonly (readonly [readonly Toleration[], readonly Taint[], number | undefined])[] = [
    [[], [GONE], 0],
    [[exists("gone")], [GONE], undefined],
    [[exists("gone", 30)], [GONE], 30_000],
    [[exists("gone", -1)], [GONE], 0],
    [[exists("gone", 30)], [GONE, DB], 0],
    [[exists("gone", 30), exists("for", 20)], [GONE, DB], 20_000],
    [[exists("gone", 30), exists("for")], [GONE, DB], 30_000],
    [[{ key: "for", value: "db" }], [DB], undefined],
    [[{ key: "for", value: "web" }], [DB], 0],
    [[{ key: "gone", operator: "Exists", effect: "NoSchedule" }], [GONE], 0],
    [[{ operator: "Exists" }], [GONE, DB], undefined],
  ];
  for (const [tolerations, taints, stay] of cases) {
    t.equal(toleratedMs(tolerations, taints), stay, JSON.stringify({ tolerations, taints }));
  }
  t.end();
});

const CANCELLED = "Cancelling deletion of Pod shop/p";
const MARKED = "Marking for deletion Pod shop/p";

t.test("a pod that waits for its eviction is evicted when its node is deleted, not when the taint goes", async (t) => {
  const untainted = { metadata: { name: "n" } };
  const cases: readonly (readonly [string, (controller: TaintEvictionController) => void, readonly string[]])[] = [
    ["tainted", () => {}, [MARKED]],
    ["untainted", (controller) => controller.observe(untainted), [CANCELLED]],
    ["deleted", (controller) => controller.forget("n"), [MARKED]],
    ["created again", (controller) => [controller.forget("n"), controller.observe(untainted)], [CANCELLED]],
  ];
  for (const [what, change, wanted] of cases) {
    const clock = new FakeClock(0);
    const informers = new FakeInformers();
    const events: string[] = [];
    const deleted: string[] = [];
    const client = {
      patch: async () => ({}),
      delete: async (_kind: unknown, { name }: { name: string }) => void deleted.push(name),
    };
    const recorder = {
      record: (_about: unknown, _type: string, _reason: string, message: string) => void events.push(message),
    };
    await using controller = new TaintEvictionController(
      {
        client: client as unknown as Client,
        observer: client as unknown as Client,
        informers,
        clock,
        random: seededRandom(1),
        log: silentLogger,
        kinds: [],
        options: defaultControllerOptions,
        signal: new AbortController().signal,
      },
      recorder as unknown as EventRecorder,
    );
    informers.sync();
    informers.put(podKind, {
      metadata: { name: "p", namespace: "shop", uid: "p" },
      spec: { nodeName: "n", containers: [], tolerations: [exists("gone", 30)] },
    });
    controller.observe({ ...untainted, spec: { taints: [GONE] } });
    await clock.advance(10_000);
    change(controller);
    await clock.advance(30_000);
    t.same(events, wanted, what);
    t.same(deleted, wanted[0] === MARKED ? ["p"] : [], what);
  }
});
