import t from "tap";
import { configMapKind } from "../api/core/config-map/kind.ts";
import { eventKind } from "../api/core/event/kind.ts";
import { podKind } from "../api/core/pod/kind.ts";
import { eventsV1EventKind } from "../api/events/event/kind.ts";
import type { CacheEvent } from "../storage/watch/watch-event.ts";
import { type Fixture, fixture, rejectionStatus } from "../testing/registry/registry-fixture.ts";
import { create } from "./create.ts";
import { remove } from "./delete.ts";
import { get } from "./get.ts";
import { list } from "./list.ts";
import { Registries } from "./registries.ts";
import { update } from "./update.ts";
import { watch } from "./watch.ts";

async function maps(f: Fixture, ...names: readonly string[]) {
  const registry = f.registries.of(configMapKind);
  for (const name of names) await create(registry, f.scope(), { metadata: { name, labels: { n: name } } });
  return registry;
}

const names = (
  items: readonly { readonly object: { readonly metadata?: { readonly name?: string | undefined } | undefined } }[],
) => items.map(({ object }) => object.metadata?.name);

t.test("list() returns every write that was acknowledged before it", async (t) => {
  await using f = fixture();
  const registry = await maps(f, "b", "a", "c");
  const page = await list(registry, f.scope());
  t.same(names(page.items), ["a", "b", "c"]);
  t.equal(page.revision, f.store.current());
  t.same(names((await list(registry, f.scope("other"))).items), []);
  t.same(names((await list(registry, f.scope(""))).items), ["a", "b", "c"], "no namespace means all");
});

t.test("list() selects by labels and fields", async (t) => {
  await using f = fixture();
  const registry = await maps(f, "a", "b", "c");
  const select = async (query: Parameters<typeof list>[2]) => names((await list(registry, f.scope(), query)).items);
  t.same(await select({ labelSelector: "n in (a,c)" }), ["a", "c"]);
  t.same(await select({ labelSelector: "!n" }), []);
  t.same(await select({ fieldSelector: "metadata.name=b" }), ["b"]);
  t.same(await select({ fieldSelector: "metadata.name!=b", labelSelector: "n!=a" }), ["c"]);
  t.equal((await rejectionStatus(list(registry, f.scope(), { fieldSelector: "spec.x=1" }))).code, 400);
  t.equal((await rejectionStatus(list(registry, f.scope(), { labelSelector: "a b" }))).code, 400);
});

t.test("list() finds the pods of a node with the index", async (t) => {
  await using f = fixture();
  const pods = f.registries.of(podKind);
  for (const [name, nodeName] of [
    ["a", "n1"],
    ["b", "n2"],
    ["c", "n1"],
  ]) {
    await create(pods, f.scope(), { metadata: { name }, spec: { nodeName, containers: [{ name: "c", image: "i" }] } });
  }
  t.same(names((await list(pods, f.scope(""), { fieldSelector: "spec.nodeName=n1" })).items), ["a", "c"]);
  t.same(names((await list(pods, f.scope("other"), { fieldSelector: "spec.nodeName=n1" })).items), []);
});

t.test("list() returns all pages at the revision of the first", async (t) => {
  await using f = fixture();
  const registry = await maps(f, "a", "b", "c", "d", "e");
  const first = await list(registry, f.scope(), { limit: 2 });
  t.same(names(first.items), ["a", "b"]);
  t.equal(first.remaining, 3);
  await remove(registry, f.scope(), "c");
  await maps(f, "bb");
  const second = await list(registry, f.scope(), { limit: 2, continue: first.continue });
  t.same(names(second.items), ["c", "d"]);
  t.equal(second.revision, first.revision);
  t.equal(second.remaining, 1);
  const cached = await list(registry, f.scope(), { limit: 2, continue: first.continue, resourceVersion: "0" });
  t.same(names(cached.items), names(second.items), "the limit holds for further pages");
  const third = await list(registry, f.scope(), { limit: 2, continue: second.continue });
  t.same(names(third.items), ["e"]);
  t.equal(third.continue, undefined);
  const selected = await list(registry, f.scope(), { limit: 1, continue: first.continue, labelSelector: "n=e" });
  t.same(names(selected.items), ["e"], "a page is filled from further on");
});

t.test("list() implements Kubernetes' table of resourceVersion and resourceVersionMatch", async (t) => {
  await using f = fixture();
  const registry = await maps(f, "a", "b");
  const old = String((await list(registry, f.scope())).revision);
  await maps(f, "c", "d");
  const future = String(f.store.current() + 100);
  const all = ["a", "b", "c", "d"];
  const cases: readonly (readonly [Parameters<typeof list>[2], readonly string[]])[] = [
    [{}, all],
    [{ resourceVersion: "0" }, all],
    [{ resourceVersion: old }, all],
    [{ limit: 2 }, ["a", "b"]],
    [{ limit: 2, resourceVersion: "0" }, all],
    [{ limit: 3, resourceVersion: old }, ["a", "b"]],
    [{ resourceVersion: "0", resourceVersionMatch: "NotOlderThan" }, all],
    [{ resourceVersion: old, resourceVersionMatch: "NotOlderThan" }, all],
    [{ resourceVersion: old, resourceVersionMatch: "Exact" }, ["a", "b"]],
    [{ limit: 3, resourceVersion: old, resourceVersionMatch: "NotOlderThan" }, ["a", "b", "c"]],
    [{ limit: 1, resourceVersion: old, resourceVersionMatch: "Exact" }, ["a"]],
    [{ resourceVersion: old, resourceVersionMatch: "Exact", labelSelector: "n=b" }, ["b"]],
  ];
  for (const [query, expected] of cases) {
    const page = await list(registry, f.scope(), query);
    t.same(names(page.items), expected, JSON.stringify(query));
    t.equal(
      page.continue !== undefined,
      query?.limit === expected.length && query.limit < 4,
      "and whether there is more",
    );
  }
  const causes = [{ reason: "ResourceVersionTooLarge" }];
  const tooLarge = { code: 504, reason: "Timeout", details: { causes } };
  const exact = list(registry, f.scope(), { resourceVersion: future, resourceVersionMatch: "Exact" });
  const ofEtcd = { code: 500, message: "etcdserver: mvcc: required revision is a future revision" };
  t.match(await rejectionStatus(exact), ofEtcd);
  const waiting = rejectionStatus(list(registry, f.scope(), { resourceVersion: future }));
  await f.clock.advance(3000);
  t.match(await waiting, { ...tooLarge, details: { retryAfterSeconds: 1, causes } });
});

t.test("list() rejects invalid tokens and resource versions", async (t) => {
  await using f = fixture();
  const registry = await maps(f, "a", "b", "c");
  const { continue: token, revision } = await list(registry, f.scope(), { limit: 1 });
  const code = async (query: Parameters<typeof list>[2]) =>
    (await rejectionStatus(list(registry, f.scope(), query))).code;
  t.equal(await code({ continue: "abc" }), 400);
  t.equal(
    await code({ continue: Buffer.from(`{"v":"meta.k8s.io/v1","rv":1,"start":"../x"}`).toString("base64url") }),
    400,
  );
  t.equal(await code({ continue: token, resourceVersion: "3" }), 400);
  t.match(
    await rejectionStatus(list(registry, f.scope(), { continue: "abc", resourceVersion: "3" })),
    { message: /^invalid continue token/ },
    "the token is checked first",
  );
  t.equal(await code({ resourceVersion: "x" }), 400);
  await maps(f, "d");
  const exact = await list(registry, f.scope(), { resourceVersion: String(revision), resourceVersionMatch: "Exact" });
  t.same(names(exact.items), ["a", "b", "c"]);
  await f.store.compact(f.store.current());
  // The history still has it, but every server over this store must return the same.
  const refused = async (query: Parameters<typeof list>[2]) => await rejectionStatus(list(registry, f.scope(), query));
  const expiredStatus = await refused({ limit: 1, continue: token });
  t.match(expiredStatus, { code: 410, reason: "Expired", message: /use the continue token in this response/ });
  const continueToken = expiredStatus.metadata.continue as string;
  await maps(f, "aa", "bb");
  const rest = await list(registry, f.scope(), { limit: 2, continue: continueToken });
  t.same(names(rest.items), ["aa", "b"], "from where it was, of what is there now");
  t.same(names((await list(registry, f.scope(), { continue: rest.continue })).items), ["bb", "c", "d"]);
  t.equal((await refused({ resourceVersion: String(revision), resourceVersionMatch: "Exact" })).code, 410);
});

t.test("get() waits for a newer resourceVersion until its timeout", async (t) => {
  await using f = fixture();
  const registry = await maps(f, "a");
  const next = String(f.store.current() + 1);
  const waiting = get(registry, f.scope(), "b", next);
  await maps(f, "b");
  t.equal((await waiting).object.metadata?.name, "b");
  const late = rejectionStatus(get(registry, f.scope(), "a", "1000"));
  await f.clock.advance(3000);
  t.match(await late, { code: 504, reason: "Timeout", details: { retryAfterSeconds: 1 } });
  t.equal(f.clock.pending, 0);
  t.equal((await get(registry, f.scope(), "a", "0")).object.metadata?.name, "a");
});

async function take<T>(events: AsyncIterable<CacheEvent<T>>, count: number): Promise<CacheEvent<T>[]> {
  const taken: CacheEvent<T>[] = [];
  for await (const event of events) if (taken.push(event) === count) break;
  return taken;
}

const shown = <T extends { readonly metadata?: { readonly name?: string | undefined } | undefined }>(
  event: CacheEvent<T>,
) => (event.type === "BOOKMARK" ? event.type : `${event.type} ${event.item.object.metadata?.name}`);

t.test("watch() without resourceVersion starts with all objects", async (t) => {
  await using f = fixture();
  const registry = await maps(f, "a", "b");
  const events = await watch(registry, f.scope(), { resourceVersion: "" });
  await maps(f, "c");
  t.same((await take(events, 3)).map(shown), ["ADDED a", "ADDED b", "ADDED c"]);
});

t.test("watch() marks the end of the initial events only with sendInitialEvents", async (t) => {
  await using f = fixture();
  const registry = await maps(f, "a");
  const requested = await watch(registry, f.scope(), { allowBookmarks: true, sendInitialEvents: true });
  const [, end] = await take(requested, 2);
  t.match(end, { type: "BOOKMARK", initialEventsEnd: true });
  const other = await watch(registry, f.scope(), { allowBookmarks: true, resourceVersion: "0" });
  await maps(f, "b");
  t.same((await take(other, 2)).map(shown), ["ADDED a", "ADDED b"]);
});

t.test("watch() from a resourceVersion replays changes; objects start and stop to match a selector", async (t) => {
  await using f = fixture();
  const registry = await maps(f, "a");
  const from = String(f.store.current());
  const change = (labels: Record<string, string>) =>
    update(registry, f.scope(), "a", { metadata: { name: "a", labels } });
  await change({ tier: "x" });
  await change({ tier: "x", more: "y" });
  await change({ tier: "z" });
  const events = await watch(registry, f.scope(), { resourceVersion: from, labelSelector: "tier=x" });
  t.same((await take(events, 3)).map(shown), ["ADDED a", "MODIFIED a", "DELETED a"]);
  t.equal((await rejectionStatus(watch(registry, f.scope(), { resourceVersion: "x" }))).code, 500);
});

t.test("watch() fails with 410 for a resourceVersion that is too old, and ends when its signal aborts", async (t) => {
  await using f = fixture();
  const registry = await maps(f, "a", "b");
  const made = await watch(registry, f.scope(), { resourceVersion: "1" });
  t.equal((await take(made, 1)).length, 1, "from the version of the first object that was made here");
  // Another server over the same store has what the store has of before its start.
  await using later = new Registries(f.registries.scheme, f.registries.deps);
  const resumed = await watch(later.of(registry.kind), f.scope(), { resourceVersion: "1" });
  t.equal((await take(resumed, 1)).length, 1);
  await f.store.compact(f.store.current());
  const old = await watch(later.of(registry.kind), f.scope(), { resourceVersion: "1" });
  t.match(await rejectionStatus(take(old, 1)), { code: 410, reason: "Expired" });
  const stop = new AbortController();
  const events = await watch(registry, f.scope("default", stop.signal), { resourceVersion: String(f.store.current()) });
  stop.abort();
  t.same(await take(events, 1), []);
});

t.test("both Event kinds serve the same objects", async (t) => {
  await using f = fixture();
  const core = f.registries.of(eventKind);
  const regarding = { kind: "Pod", namespace: "default", name: "web" };
  await create(core, f.scope(), {
    metadata: { name: "e" },
    involvedObject: regarding,
    reason: "R",
    message: "note",
    type: "Normal",
  });
  const newer = await get(f.registries.of(eventsV1EventKind), { ...f.scope(), group: "events.k8s.io" }, "e");
  t.match(newer.object, { regarding, note: "note", reason: "R" });
});
