import t from "tap";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { eventKind } from "../../api/core/event/kind.ts";
import type { CacheEvent } from "../../storage/watch/watch-event.ts";
import { fixture, rejectionStatus } from "../../testing/registry/registry-fixture.ts";
import { create } from "../create.ts";
import { remove } from "../delete.ts";
import { get } from "../get.ts";
import { list } from "../list.ts";
import { update } from "../update.ts";
import { watch } from "../watch.ts";
import { uncachedKinds } from "./uncached.ts";

async function setUp() {
  const parts = fixture({ isUncached: (kind) => kind.plural === "configmaps" });
  const registry = parts.registries.of(configMapKind);
  const scope = parts.scope();
  const scopeUntil = (signal: AbortSignal) => parts.scope("default", signal);
  const make = (name: string, labels: Readonly<Record<string, string>> = {}) =>
    create(registry, scope, { metadata: { name, namespace: "default", labels } });
  return { ...parts, registry, scope, scopeUntil, make };
}

const textOf = (event: CacheEvent<object>): string => {
  if (event.type === "BOOKMARK") return `BOOKMARK ${event.revision}`;
  const { metadata } = event.item.object as { metadata?: { name?: string; resourceVersion?: string } };
  return `${event.type} ${metadata?.name}@${metadata?.resourceVersion}`;
};

t.test("a kind without watch cache is read from the store", async (t) => {
  await using f = await setUp();
  const { registry, scope, make } = f;
  await make("b", { app: "x" });
  await make("a");
  const first = await get(registry, scope, "a");
  t.match(first, { object: { metadata: { name: "a", resourceVersion: "3" } }, revision: 3 });
  t.match((await rejectionStatus(get(registry, scope, "none"))).code, 404);
  t.match(await rejectionStatus(get(registry, scope, "a", "99")), { code: 504, details: { retryAfterSeconds: 1 } });
  const names = async (query: Parameters<typeof list>[2]): Promise<unknown> => {
    const page = await list(registry, scope, query);
    return [page.items.map(({ object }) => object.metadata?.name), page.revision, page.remaining];
  };
  t.same(await names({}), [["a", "b"], 3, undefined]);
  t.same(await names({ resourceVersion: "0" }), [["a", "b"], 3, undefined]);
  t.same(await names({ labelSelector: "app=x" }), [["b"], 3, undefined]);
  t.same(await names({ limit: 1 }), [["a"], 3, 1]);
  t.match((await rejectionStatus(list(registry, scope, { resourceVersion: "99" }))).code, 504);
});

t.test("a write of a kind without watch cache starts from the stored object", async (t) => {
  await using f = await setUp();
  const { registry, scope, make } = f;
  await make("a");
  const { object } = await update(registry, scope, "a", {
    metadata: { name: "a", namespace: "default" },
    data: { k: "v" },
  });
  t.match(object, { metadata: { resourceVersion: "3" }, data: { k: "v" } });
  await remove(registry, scope, "a");
  t.equal((await rejectionStatus(get(registry, scope, "a"))).code, 404);
});

t.test("a watch of a kind without watch cache reads the store, with its selector", async (t) => {
  await using f = await setUp();
  const { registry, make, scope, store, clock } = f;
  const controller = new AbortController();
  const watchScope = f.scopeUntil(controller.signal);
  await make("a", { app: "x" });
  const events: string[] = [];
  const follow = async (query: Parameters<typeof watch>[2]): Promise<void> => {
    for await (const event of await watch(registry, watchScope, query)) events.push(textOf(event));
  };
  const watching = follow({ labelSelector: "app=x", allowBookmarks: true });
  await make("b");
  const change = async (name: string, labels: Readonly<Record<string, string>>): Promise<void> =>
    void (await update(registry, scope, name, { metadata: { name, namespace: "default", labels } }));
  await change("b", { app: "x" });
  await change("a", {});
  await remove(registry, scope, "b");
  await clock.advance(61_000);
  await make("c");
  await clock.advance(0);
  t.same(events, ["ADDED a@2", "ADDED b@4", "DELETED a@5", "DELETED b@6", "BOOKMARK 7"]);
  controller.abort();
  await watching;
  await store.compact(store.current());
  const late = await watch(registry, scope, { resourceVersion: "2" });
  t.match(await rejectionStatus(late[Symbol.asyncIterator]().next()), { code: 410, reason: "Expired" });
});

t.test("uncachedKinds() accepts resources with both group aliases", async (t) => {
  t.equal(uncachedKinds("all")(configMapKind), true);
  t.equal(uncachedKinds([])(configMapKind), false);
  t.equal(uncachedKinds(["configmaps"])(configMapKind), true);
  t.equal(uncachedKinds(["configmaps.apps"])(configMapKind), false);
  t.equal(uncachedKinds(["events.events.k8s.io"])(eventKind), false, "another group");
  t.equal(uncachedKinds(["events"])(eventKind), true);
});
