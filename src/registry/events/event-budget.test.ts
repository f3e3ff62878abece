import t from "tap";
import { eventKind } from "../../api/core/event/kind.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { prefixRange } from "../../storage/store.ts";
import { fixture } from "../../testing/registry/registry-fixture.ts";
import { create } from "../create.ts";
import { EventBudget, type EventLimits } from "./event-budget.ts";

function setUp(limits: EventLimits) {
  const parts = fixture({ eventTtlSeconds: 3600 });
  const { registries, clock, store } = parts;
  const registry = registries.of(eventKind);
  const budget = new EventBudget({
    feed: registries.feedOf(eventKind),
    objects: registry.objects,
    clock,
    log: silentLogger,
    limits,
  });
  let count = 0;
  return {
    clock,
    store,
    registry,
    async say(name: string, namespace = "default"): Promise<string> {
      const event = { metadata: { name: `${name}.${++count}`, namespace }, reason: "R" };
      const involvedObject = { kind: "Pod", namespace, name };
      await create(registry, parts.scope(namespace), { ...event, involvedObject });
      return `${namespace}/${name}.${count}`;
    },
    async found(): Promise<string[]> {
      await clock.advance(0);
      const { items } = await store.list(prefixRange(registry.objects.prefix()));
      return items.map(({ key }) => key.slice(registry.objects.prefix().length));
    },
    async [Symbol.asyncDispose]() {
      await budget[Symbol.asyncDispose]();
      await parts[Symbol.asyncDispose]();
    },
  };
}

const UNLIMITED = 1e9;

t.test("EventBudget keeps the newest events of each involved object", async (t) => {
  await using f = setUp({ perObject: 3, events: 1000, bytes: UNLIMITED });
  const quiet = await f.say("quiet");
  const loud: string[] = [];
  for (let i = 0; i < 50; i++) loud.push(await f.say("loud"));
  t.same(await f.found(), [...loud.slice(-3), quiet].sort());
});

t.test("EventBudget deletes events of the objects that have the most", async (t) => {
  await using f = setUp({ perObject: 1000, events: 100, bytes: UNLIMITED });
  const quiet = [await f.say("a", "other"), await f.say("b", "other"), await f.say("c")];
  for (let i = 0; i < 200; i++) await f.say("loud", i % 2 === 0 ? "default" : "second");
  const found = await f.found();
  t.ok(found.length <= 100 && found.length >= 90, `${found.length} are left`);
  for (const event of quiet) t.ok(found.includes(event), event);
});

t.test("EventBudget limits a namespace to half of the cluster's limits", async (t) => {
  await using f = setUp({ perObject: 1000, events: 100, bytes: UNLIMITED });
  const first = await f.say("first", "other");
  for (let i = 0; i < 80; i++) await f.say(`pod-${i}`);
  const found = await f.found();
  t.ok(found.length <= 51 && found.length > 45, `${found.length} are left`);
  t.ok(found.includes(first) && !found.includes("default/pod-0.2"), "its own oldest events are deleted");
});

t.test("EventBudget limits bytes, counts events of before its start, and stops counting expired ones", async (t) => {
  await using f = setUp({ perObject: 1000, events: 1000, bytes: 8000 });
  for (let i = 0; i < 100; i++) await f.say(`pod-${i}`);
  const few = await f.found();
  t.ok(few.length > 10 && few.length < 40, `${few.length} are left`);
  await f.clock.advance(3_700_000);
  t.same(await f.found(), []);
});
