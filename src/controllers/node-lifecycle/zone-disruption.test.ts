import t from "tap";
import type { Node } from "../../api/core/node/schema.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { ZoneDisruption } from "./zone-disruption.ts";

function nodes(count: number, ready: "True" | "False" | "Unknown", zone: string): readonly Node[] {
  return Array.from({ length: count }, (_, i) => ({
    metadata: { name: `${zone}-${ready}-${i}`, labels: { "topology.kubernetes.io/zone": zone } },
    status: { conditions: [{ type: "Ready", status: ready }] },
  }));
}

interface TestCase {
  readonly why: string;
  readonly zones: readonly (readonly Node[])[];
  /** Evicted nodes within the first 95 s, of all that are not ready. */
  readonly evicted: number;
}

const situations: readonly TestCase[] = [
  { why: "a few", zones: [nodes(2, "Unknown", "a"), nodes(1, "True", "a")], evicted: 2 },
  { why: "one each 10 s", zones: [nodes(20, "Unknown", "a"), nodes(80, "True", "a")], evicted: 10 },
  { why: "most of a small zone", zones: [nodes(30, "False", "a"), nodes(10, "True", "a")], evicted: 0 },
  { why: "most of a large zone, one each 100 s", zones: [nodes(40, "False", "a"), nodes(20, "True", "a")], evicted: 1 },
  { why: "a whole zone", zones: [nodes(20, "Unknown", "a"), nodes(1, "True", "b")], evicted: 10 },
  { why: "everything", zones: [nodes(20, "Unknown", "a"), nodes(2, "False", "b")], evicted: 0 },
];

t.test("ZoneDisruption limits the rate of evictions by the state of the zones", async (t) => {
  for (const { why, zones, evicted } of situations) {
    const clock = new FakeClock();
    const turns: string[] = [];
    using disruption = new ZoneDisruption(clock, (name) => turns.push(name));
    const all = zones.flat();
    disruption.update(all);
    for (const node of all) if (node.status?.conditions?.[0]?.status !== "True") disruption.requestEviction(node);
    await clock.advance(95_000);
    t.equal(turns.length, evicted, why);
    t.equal(new Set(turns).size, evicted, `${why}: each once`);
  }
});

t.test("ZoneDisruption starts again when the first node is ready after all were down", async (t) => {
  const clock = new FakeClock();
  const turns: string[] = [];
  using disruption = new ZoneDisruption(clock, (name) => turns.push(name));
  const lost = nodes(3, "Unknown", "a");
  t.ok(disruption.update(lost));
  t.ok(disruption.allDown);
  t.notOk(disruption.requestEviction(lost[0]!));
  t.ok(disruption.update([...lost, ...nodes(5, "True", "a")]));
  t.notOk(disruption.allDown);
  t.ok(disruption.requestEviction(lost[0]!));
  t.notOk(disruption.requestEviction(lost[1]!), "waits");
  disruption.withdraw(lost[1]!.metadata?.name ?? "");
  await clock.advance(60_000);
  t.same(turns, ["a-Unknown-0"], "a ready node is not evicted");
});

t.test("ZoneDisruption ignores nodes with the exclude-disruption label", (t) => {
  using disruption = new ZoneDisruption(new FakeClock(), () => {});
  const [node] = nodes(1, "Unknown", "a");
  const labels = { "node.kubernetes.io/exclude-disruption": "" };
  disruption.update([{ ...node!, metadata: { ...node!.metadata, labels } }]);
  t.notOk(disruption.allDown);
  t.end();
});
