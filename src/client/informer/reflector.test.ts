import t from "tap";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import { dropManagedFields } from "../../api/meta/managed-fields.ts";
import { StatusError } from "../../api/status.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeConfigMapClient, mapOf } from "../../testing/client/fake-config-map-client.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { startInformer } from "./informer.ts";
import { type ReflectorEvent, reflect } from "./reflector.ts";

function start() {
  const api = new FakeConfigMapClient();
  const clock = new FakeClock();
  const stop = new AbortController();
  const events: string[] = [];
  const onEvent = (event: ReflectorEvent<ConfigMap>) => {
    const what =
      event.type === "replace" ? event.items.map((item) => item.metadata?.name).join() : event.object.metadata?.name;
    events.push(`${event.type} ${what}`);
  };
  const options = { client: api.client, kind: configMapKind, clock, random: seededRandom(1), log: silentLogger };
  const run = () => reflect({ ...options, onEvent }, stop.signal);
  return { api, clock, stop, events, options, run };
}

t.test("reflect() lists, then watches from there", async (t) => {
  const { api, clock, stop, events, run } = start();
  api.put(mapOf("a"));
  const running = run();
  await clock.advance(0);
  api.put(mapOf("b"));
  api.delete("a");
  await clock.advance(0);
  t.strictSame(events, ["replace a", "put b", "delete a"]);
  t.strictSame(api.requests, ["list 0", "watch 1"]);
  stop.abort();
  await running;
  t.equal(clock.pending, 0);
});

t.test("reflect() gets the objects with the watch when the client streams lists", async (t) => {
  const { api, clock, stop, events, options } = start();
  api.streamsLists = true;
  api.put(mapOf("a"));
  const onEvent = (event: ReflectorEvent<ConfigMap>) => {
    events.push(event.type === "replace" ? `replace ${event.items.length} ${event.resourceVersion}` : event.type);
  };
  const running = reflect({ ...options, client: api.client, onEvent }, stop.signal);
  await clock.advance(0);
  t.strictSame(events, ["replace 1 1"]);
  api.put(mapOf("b"));
  api.bookmark("7");
  await clock.advance(0);
  api.breakWatches(new Error("reset"));
  await clock.advance(2000);
  api.breakWatches(new StatusError(410, "Expired", "too old"));
  await clock.advance(5000);
  t.strictSame(api.requests, ["watch NotOlderThan", "watch 7", "watch NotOlderThan"]);
  t.strictSame(events, ["replace 1 1", "put", "replace 2 2"]);
  stop.abort();
  await running;
});

t.test("reflect() lists when the server refuses to stream the list, or the stream ends early", async (t) => {
  const { api, clock, stop, events, options } = start();
  api.streamsLists = false;
  api.put(mapOf("a"));
  const onEvent = (event: ReflectorEvent<ConfigMap>) => void events.push(event.type);
  const running = reflect({ ...options, client: api.client, onEvent }, stop.signal);
  await clock.advance(0);
  api.breakWatches(new StatusError(410, "Expired", "too old"));
  await clock.advance(5000);
  t.strictSame(api.requests, ["watch NotOlderThan", "list 0", "watch 1", "list ", "watch 1"], "refused once");
  t.strictSame(events, ["replace", "replace"]);
  stop.abort();
  await running;
});

t.test("reflect() resumes a broken watch at its last revision, after a growing delay", async (t) => {
  const { api, clock, stop, events, run } = start();
  const running = run();
  await clock.advance(0);
  api.put(mapOf("a"));
  await clock.advance(0);
  api.breakWatches(new Error("reset"));
  await clock.advance(0);
  t.equal(api.requests.length, 2, "not at once");
  api.put(mapOf("b"));
  await clock.advance(1600);
  t.strictSame(api.requests, ["list 0", "watch 0", "watch 1"]);
  t.strictSame(events, ["replace ", "put a", "put b"]);
  api.failing = new Error("down");
  api.breakWatches(new Error("reset"));
  await clock.advance(200_000);
  const tries = api.requests.length;
  t.ok(tries < 15, `${tries} requests in 200 s`);
  api.failing = undefined;
  api.put(mapOf("c"));
  await clock.advance(60_000);
  t.equal(events.at(-1), "put c");
  stop.abort();
  await running;
});

t.test("reflect() lists the latest state when its revision is gone", async (t) => {
  const { api, clock, stop, events, run } = start();
  const running = run();
  await clock.advance(0);
  api.breakWatches(new StatusError(410, "Expired", "too old"));
  api.put(mapOf("a"));
  await clock.advance(2000);
  t.strictSame(api.requests.slice(0, 4), ["list 0", "watch 0", "list ", "watch 1"]);
  t.strictSame(events, ["replace ", "replace a"]);
  stop.abort();
  await running;
});

t.test("reflect() resumes from bookmarks, and does not treat the end of a watch as a failure", async (t) => {
  const { api, clock, stop, run } = start();
  const running = run();
  await clock.advance(0);
  api.bookmark("42");
  await clock.advance(0);
  api.endWatches();
  await clock.advance(0);
  t.strictSame(api.requests, ["list 0", "watch 0", "watch 42"]);
  stop.abort();
  await running;
});

t.test(
  "startInformer() caches objects, calls its subscribers once for each change, and logs their errors",
  async (t) => {
    const { api, clock, options } = start();
    api.put(mapOf("a"));
    const informer = startInformer(options);
    t.equal(informer.isSynced, false);
    await clock.advance(0);
    await informer.synced;
    const calls: string[] = [];
    informer.subscribe({
      put() {
        throw new Error("handler error");
      },
    });
    const stop = informer.subscribe({
      put: (object, previous) => calls.push(`${previous === undefined ? "add" : "change"} ${object.metadata?.name}`),
      delete: (object) => calls.push(`delete ${object.metadata?.name}`),
    });
    api.put(mapOf("a"));
    api.put(mapOf("b"));
    api.delete("a");
    await clock.advance(0);
    t.strictSame(calls, ["add a", "change a", "add b", "delete a"]);
    t.equal(informer.get("b", "ns")?.metadata?.name, "b");
    t.equal(informer.get("b"), undefined, "another namespace");
    t.strictSame([...informer.list()].length, informer.size);
    api.breakWatches(new StatusError(410, "Expired", ""));
    api.put(mapOf("c"));
    api.delete("b");
    await clock.advance(2000);
    t.strictSame(calls.slice(4), ["delete b", "add c"], "a new list reports only changes");
    stop();
    api.put(mapOf("d"));
    await clock.advance(0);
    t.equal(calls.length, 6);
    await informer[Symbol.asyncDispose]();
    t.equal(clock.pending, 0);
  },
);

t.test("startInformer() rejects synced when it stops first", async (t) => {
  const { api, clock, options } = start();
  api.failing = new Error("down");
  const controller = new AbortController();
  const informer = startInformer(options, controller.signal);
  await clock.advance(5000);
  controller.abort();
  await t.rejects(informer.synced, { name: "AbortError" });
});

t.test("an informer with dropManagedFields() keeps objects without managed fields", async (t) => {
  const { api, clock, options } = start();
  api.put({ ...mapOf("a"), metadata: { ...mapOf("a").metadata, managedFields: [{ manager: "m" }] } });
  const informer = startInformer({ ...options, transform: dropManagedFields });
  await clock.advance(0);
  t.same(informer.get("a", "ns")?.metadata, { name: "a", namespace: "ns", resourceVersion: "1" });
  await informer[Symbol.asyncDispose]();
});
