import t from "tap";
import { eventKind } from "../api/core/event/kind.ts";
import { eventsV1EventKind } from "../api/events/event/kind.ts";
import { priorityClassKind } from "../api/scheduling/priority-class/kind.ts";
import { type Status, StatusError } from "../api/status.ts";
import { goQuote } from "../schema/value/go-quote.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { makeWidget, type Widget, widgetKind } from "../testing/storage/widget.ts";
import type { StorageMediaType } from "./codec.ts";
import { createMemoryStore } from "./memory.ts";
import { ObjectStore } from "./object-store.ts";
import type { Revision, Store } from "./store.ts";

function setUp(mediaType?: StorageMediaType): { store: Store; objects: ObjectStore<Widget>; clock: FakeClock } {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  return { store, clock, objects: new ObjectStore({ store, kind: widgetKind, prefix: "/registry", mediaType }) };
}

/** What a rejection must match; tap's types want an Error. */
function refusal(status: Partial<Status>, message = /./): Error {
  return { name: "StatusError", status, message } as unknown as Error;
}

const text = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString("latin1");

t.test("ObjectStore writes Kubernetes' names when it is to, and reads those of both", async (t) => {
  const { store } = setUp();
  const options = { store, kind: priorityClassKind, prefix: "/registry" };
  const kubernetes = new ObjectStore({ ...options, names: "k8s" });
  const json = new ObjectStore({ ...options, names: "k8s", mediaType: "application/json" });
  const key = (name: string) => kubernetes.key(undefined, name);
  await kubernetes.create(key("a"), { metadata: { name: "a" }, value: 1 });
  await json.create(key("b"), { metadata: { name: "b" }, value: 2 });
  const stored = async (name: string) => Buffer.from((await store.get(key(name)))!.value);
  t.equal((await stored("a")).subarray(0, 4).toString("latin1"), "k8s\0");
  t.match((await stored("a")).toString("latin1"), /scheduling\.k8s\.io\/v1.*PriorityClass/s);
  t.match(JSON.parse((await stored("b")).toString()), { apiVersion: "scheduling.k8s.io/v1", kind: "PriorityClass" });
  const own = new ObjectStore(options);
  for (const name of ["a", "b"]) t.same(await own.get(key(name)), await kubernetes.get(key(name)));
});

t.test("ObjectStore.key() returns a path and rejects names that are not a path segment", async (t) => {
  const { objects } = setUp();
  t.equal(objects.key("default", "web"), "/registry/widgets/default/web");
  t.equal(objects.prefix(), "/registry/widgets/");
  t.equal(objects.prefix("default"), "/registry/widgets/default/");
  const { store } = setUp();
  const cluster = new ObjectStore({ store, kind: { ...widgetKind, namespaced: false }, prefix: "a/b/" });
  t.equal(cluster.key(undefined, "n1"), "/a/b/widgets/n1");
  t.equal(cluster.key("ignored", "n1"), "/a/b/widgets/n1");
  for (const [namespace, name, message] of [
    ["default", "", "Name parameter required."],
    [undefined, "x", "Namespace parameter required."],
    ["default", "..", `Name parameter invalid: "..": may not be '..'`],
    ["default", "a/b%", `Name parameter invalid: "a/b%": may not contain '/';may not contain '%'`],
    ["default", "a\0", `Name parameter invalid: "a\\x00": may not contain NUL`],
  ] as const) {
    t.throws(() => objects.key(namespace, name), refusal({ code: 400, message }));
  }
  for (const namespace of [".", "..", "a/../b", "a\0"]) {
    const invalid = (rest: string) =>
      refusal({ code: 500, message: `invalid key: ${goQuote(`/widgets/${namespace}${rest}`)}` });
    t.throws(() => objects.key(namespace, "x"), invalid("/x"));
    t.throws(() => objects.prefix(namespace), invalid(""));
  }
});

t.test(
  "ObjectStore.create() stores a protobuf envelope without resourceVersion and returns the object with one",
  async (t) => {
    const { objects, store } = setUp();
    const key = objects.key("default", "a");
    const created = await objects.create(key, {
      kind: "Widget",
      apiVersion: "test.svc.io/v1",
      ...makeWidget("a", { color: "red", size: 3 }),
      metadata: { name: "a", namespace: "default", resourceVersion: "777" },
    });
    t.same(created, { metadata: { name: "a", namespace: "default", resourceVersion: "2" }, color: "red", size: 3 });
    t.ok(Object.isFrozen(created) && Object.isFrozen(created.metadata));
    const stored = text((await store.get(key))?.value);
    t.match(stored, /^svc\0/);
    t.match(stored, "test.svc.io/v1");
    t.notMatch(stored, "777");
    t.same(await objects.get(key), created);
    t.equal(await objects.get(objects.key("default", "b")), undefined);
    await t.rejects(
      objects.create(key, makeWidget("a")),
      refusal({ code: 409, reason: "AlreadyExists", message: 'widgets.test.svc.io "a" already exists' }),
    );
    const subject = { group: "test.k8s.io", resource: "widgets", name: "a" };
    await t.rejects(objects.create(key, makeWidget("a"), { subject }), {
      message: 'widgets.test.k8s.io "a" already exists',
    });
  },
);

t.test("ObjectStore reads all media types and writes the configured one", async (t) => {
  const json = setUp("application/json");
  const key = json.objects.key("default", "a");
  const created = await json.objects.create(key, makeWidget("a", { color: "red" }));
  const stored = text((await json.store.get(key))?.value);
  t.same(JSON.parse(stored), {
    kind: "Widget",
    apiVersion: "test.svc.io/v1",
    metadata: { name: "a", namespace: "default", uid: "uid-a", creationTimestamp: null },
    color: "red",
  });
  const protobuf = new ObjectStore({ store: json.store, kind: widgetKind, prefix: "/registry" });
  t.same(await protobuf.get(key), created);
  const rewritten = await protobuf.guaranteedUpdate(key, (current) => current);
  t.equal(rewritten.metadata?.resourceVersion, "3", "an update that changes only the media type is written");
  t.match(text((await json.store.get(key))?.value), /^svc\0/);
  t.same((await json.objects.get(key))?.color, "red");
  const yaml = new ObjectStore({ ...json, kind: widgetKind, prefix: "/registry", mediaType: "application/yaml" });
  await yaml.guaranteedUpdate(key, (current) => ({ ...current, size: 7 }));
  t.match(text((await json.store.get(key))?.value), /^apiVersion: test.svc.io\/v1\ncolor: red\nkind: Widget\n/);
  t.match(await json.objects.get(key), { color: "red", size: 7, metadata: { uid: "uid-a" } });
});

t.test("ObjectStore reports the key of a value that it cannot decode", async (t) => {
  const { objects, store } = setUp();
  for (const [name, bytes] of Object.entries({
    empty: "",
    noise: "hello",
    cut: '{"metadata":',
    kind: "svc\0\x0a\x08\x0a\x02v1\x12\x03Pod",
    field: '{"kind":"Widget","size":"x"}',
    other: '{"kind":"Pod"}',
    null: "null",
    yaml: "kind: [",
  })) {
    const key = objects.key("default", name);
    await store.create(key, Buffer.from(bytes, "latin1"));
    await t.rejects(
      objects.get(key),
      { name: "StoreError", code: "corrupt", message: `Cannot decode "${key}": ` },
      name,
    );
  }
});

t.test("ObjectStore.guaranteedUpdate() retries when another write comes between", async (t) => {
  const { objects } = setUp();
  const key = objects.key("default", "a");
  await objects.create(key, makeWidget("a", { size: 0 }));
  const increments = Array.from({ length: 10 }, () =>
    objects.guaranteedUpdate(key, async (current) => {
      await Promise.resolve();
      return { ...current, size: (current.size ?? 0) + 1 };
    }),
  );
  const versions = (await Promise.all(increments)).map((widget) => widget.metadata?.resourceVersion);
  t.equal((await objects.get(key))?.size, 10);
  t.equal(new Set(versions).size, 10);
});

t.test(
  "ObjectStore.guaranteedUpdate() writes nothing when nothing changes, and rejects with the error of the update",
  async (t) => {
    const { objects, store } = setUp();
    const key = objects.key("default", "a");
    await t.rejects(
      objects.guaranteedUpdate(key, (current) => current),
      refusal({ code: 404, message: 'widgets.test.svc.io "a" not found' }),
    );
    const created = await objects.create(key, makeWidget("a"));
    const before = store.current();
    t.same(await objects.guaranteedUpdate(key, (current) => ({ ...current })), created);
    t.equal(store.current(), before);
    const no = new StatusError(422, "Invalid", "no");
    await t.rejects(
      objects.guaranteedUpdate(key, () => {
        throw no;
      }),
      no,
    );
  },
);

t.test("parallel updates of one object make at most two attempts each, and all take effect", async (t) => {
  const { objects } = setUp();
  const key = objects.key("default", "a");
  await objects.create(key, makeWidget("a", { size: 0 }));
  let attempts = 0;
  const writers = 200;
  const increment = async (): Promise<unknown> => {
    return await objects.guaranteedUpdate(key, async (current) => {
      attempts++;
      // As admission does.
      for (let i = 0; i < 5; i++) await Promise.resolve();
      return { ...current, size: (current.size ?? 0) + 1 };
    });
  };
  await Promise.all(Array.from({ length: writers }, increment));
  t.equal((await objects.get(key))?.size, writers);
  t.ok(attempts <= 2 * writers, `${attempts} attempts`);
});

t.test("ObjectStore.guaranteedUpdate() retries with the stored object when the cached one is stale", async (t) => {
  const { objects, store } = setUp();
  const key = objects.key("default", "a");
  const old = await objects.create(key, makeWidget("a", { size: 1 }));
  const cached = { object: old, revision: store.current() };
  const fresh = await objects.guaranteedUpdate(key, (current) => ({ ...current, size: 2 }), { cached });
  t.equal(fresh.size, 2);
  const seen: (number | undefined)[] = [];
  const updated = await objects.guaranteedUpdate(
    key,
    (current) => {
      seen.push(current.size);
      return { ...current, size: (current.size ?? 0) + 10 };
    },
    { cached },
  );
  t.same([seen, updated.size], [[1, 2], 12]);
  const refused = objects.guaranteedUpdate(
    key,
    (current) => {
      if (current.size === 1) throw new Error("refused what is stale");
      return current;
    },
    { cached },
  );
  t.equal((await refused).size, 12);
  t.equal((await objects.guaranteedUpdate(key, () => old, { cached })).size, 1, "a change back is a change");
});

t.test(
  "ObjectStore.guaranteedUpdate() does not read the store when the cached object is current, also with getters",
  async (t) => {
    const { store, objects } = setUp();
    const key = objects.key("default", "web");
    const created = await objects.create(key, makeWidget("web", { size: 1 }));
    class Lazy {
      readonly revision = store.current();
      get object(): Widget {
        return created;
      }
    }
    let reads = 0;
    const get = store.get.bind(store);
    store.get = (...parameters) => {
      reads++;
      return get(...parameters);
    };
    const next = await objects.guaranteedUpdate(key, (current) => ({ ...current, size: 2 }), { cached: new Lazy() });
    t.same([next.size, reads], [2, 0]);
  },
);

t.test("ObjectStore.delete() returns the last state with the revision of the deletion", async (t) => {
  const { objects, store } = setUp();
  const key = objects.key("default", "a");
  await objects.create(key, makeWidget("a", { size: 5 }));
  await t.rejects(
    objects.delete(key, {
      check: () => {
        throw new StatusError(403, "Forbidden", "not yours");
      },
    }),
    refusal({ code: 403 }),
  );
  const deleted = await objects.delete(key);
  t.same([deleted.size, deleted.metadata?.resourceVersion], [5, String(store.current())]);
  await t.rejects(objects.delete(key), refusal({ code: 404 }));
});

t.test("ObjectStore checks preconditions", async (t) => {
  const { objects } = setUp();
  const key = objects.key("default", "a");
  await objects.create(key, makeWidget("a"));
  await t.rejects(
    objects.delete(key, { preconditions: { uid: "other" } }),
    refusal({
      code: 409,
      reason: "Conflict",
      message:
        'Operation cannot be fulfilled on widgets.test.svc.io "a": StorageError: invalid object, Code: 4, ' +
        "Key: /registry/widgets/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: " +
        "UID in precondition: other, UID in object meta: uid-a",
    }),
  );
  await t.rejects(
    objects.guaranteedUpdate(key, (x) => x, { preconditions: { resourceVersion: "1" } }),
    refusal({ code: 409 }, /ResourceVersion in precondition: 1, ResourceVersion in object meta: 2$/),
  );
  await objects.delete(key, { preconditions: { uid: "uid-a", resourceVersion: "2" } });
});

t.test("ObjectStore.list() pages through a prefix at one revision", async (t) => {
  const { objects, store } = setUp();
  for (const name of ["c", "a", "b"]) await objects.create(objects.key("default", name), makeWidget(name));
  await objects.create(objects.key("other", "d"), { metadata: { name: "d", namespace: "other" } });
  const names = (items: readonly Widget[]): (string | undefined)[] => items.map((item) => item.metadata?.name);
  const first = await objects.list(objects.prefix("default"), { limit: 2 });
  t.same([names(first.items), first.remaining, first.revision], [["a", "b"], 1, store.current()]);
  await objects.delete(objects.key("default", "c"));
  const rest = await objects.list(objects.prefix("default"), {
    limit: 2,
    after: objects.key("default", "b"),
    revision: first.revision as Revision,
  });
  t.same([names(rest.items), rest.remaining], [["c"], 0]);
  t.same(names((await objects.list(objects.prefix())).items), ["a", "b", "d"]);
});

t.test("ObjectStore.create() sets the time to live", async (t) => {
  const { objects, clock } = setUp();
  const key = objects.key("default", "a");
  await objects.create(key, makeWidget("a"), { ttlSeconds: 10 });
  await clock.advance(11_000);
  t.equal(await objects.get(key), undefined);
});

t.test("ObjectStore serves one stored object in both of its versions", async (t) => {
  for (const mediaType of ["application/json", "application/vnd.svc.protobuf"] as const) {
    const { store } = setUp();
    const core = new ObjectStore({ store, kind: eventKind, prefix: "/registry", mediaType });
    const renamed = new ObjectStore({ store, kind: eventsV1EventKind, prefix: "/registry", mediaType });
    const key = renamed.key("default", "a");
    t.equal(core.key("default", "a"), key);
    const regarding = { kind: "Pod", name: "web" };
    const eventTime = "2026-01-01T00:00:00.000000Z";
    await renamed.create(key, { metadata: { name: "a" }, eventTime, regarding, note: "Pulled", deprecatedCount: 3 });
    t.match(await core.get(key), { involvedObject: regarding, message: "Pulled", count: 3, eventTime });
    await core.guaranteedUpdate(key, (event) => ({ ...event, message: "Started" }));
    t.match(await renamed.get(key), { regarding, note: "Started", metadata: { resourceVersion: "3" } });
    const stored = text((await store.get(key))?.value);
    t.notMatch(stored, "events.svc.io", "stored as core v1");
  }
});
