import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { makeWidget, type Widget, widgetKind } from "../../testing/storage/widget.ts";
import { createMemoryStore } from "../memory.ts";
import { ObjectStore } from "../object-store.ts";
import type { Revision } from "../store.ts";
import { watchUncached } from "./uncached-watch.ts";
import type { CacheEvent } from "./watch-event.ts";

function setUp() {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const objects = new ObjectStore({ store, kind: widgetKind, prefix: "/registry" });
  const stop = new AbortController();
  const key = (name: string): string => objects.key("default", name);
  const options = { store, objects, clock, prefix: objects.prefix(), signal: stop.signal };
  return { clock, store, objects, key, options, stop };
}

const describe = (event: CacheEvent<Widget>): string =>
  event.type === "BOOKMARK" ? `BOOKMARK ${event.revision}` : `${event.type} ${event.item.object.metadata?.name}`;

async function next(events: AsyncGenerator<CacheEvent<Widget>>): Promise<string> {
  const step = await events.next();
  return step.done === true ? "end" : describe(step.value);
}

t.test("watchUncached() sends all objects, a bookmark, and then changes", async (t) => {
  const { store, objects, key, options, stop } = setUp();
  await objects.create(key("a"), makeWidget("a", { color: "red" }));
  await objects.create(key("b"), makeWidget("b", { color: "blue" }));
  const events = watchUncached({
    ...options,
    bookmarks: true,
    initialEventsEnd: true,
    matches: ({ object: { color } }) => color === "red",
  });
  t.same([await next(events), await next(events)], ["ADDED a", `BOOKMARK ${store.current()}`]);
  const coming = next(events);
  await objects.guaranteedUpdate(key("b"), (widget) => ({ ...widget, color: "red" }));
  t.equal(await coming, "ADDED b", "it enters the selector");
  const leaving = next(events);
  await objects.guaranteedUpdate(key("a"), (widget) => ({ ...widget, color: "blue" }));
  t.equal(await leaving, "DELETED a", "it leaves the selector");
  const going = next(events);
  await objects.delete(key("b"));
  t.equal(await going, "DELETED b");
  stop.abort();
  t.equal(await next(events), "end");
});

t.test("watchUncached() from a revision sends later changes, or fails with 410", async (t) => {
  const { store, objects, key, options, stop } = setUp();
  const first = await objects.create(key("a"), makeWidget("a"));
  await objects.create(key("b"), makeWidget("b"));
  const events = watchUncached({ ...options, from: Number(first.metadata?.resourceVersion) as Revision });
  t.equal(await next(events), "ADDED b");
  stop.abort();
  await store.compact(store.current());
  const late = watchUncached({ ...options, signal: new AbortController().signal, from: 0 as Revision });
  await t.rejects(next(late), {
    name: "StatusError",
    message: "The resourceVersion for the provided watch is too old.",
  });
});
