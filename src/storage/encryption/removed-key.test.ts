/** A reload may remove the key of values that are stored: caches must survive changes of such objects. */
import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { makeWidget, type Widget, widgetKind } from "../../testing/storage/widget.ts";
import { createMemoryStore } from "../memory.ts";
import { ObjectStore } from "../object-store.ts";
import { prefixRange } from "../store.ts";
import { WatchCache } from "../watch/cache.ts";
import { CacheMemory } from "../watch/cache-memory.ts";
import { StoreFeed } from "../watch/feed.ts";
import { aesGcm } from "./ciphers.ts";
import { EncryptedStore } from "./encrypted-store.ts";
import { cipherTransformer, joinTransformers } from "./transformer.ts";

const withKey = (name: string) =>
  joinTransformers(
    [{ prefix: `k8s:enc:aesgcm:v1:${name}:`, transformer: cipherTransformer(aesGcm(Buffer.alloc(32, name))) }],
    "no matching prefix found",
    undefined,
  );

for (const change of ["deletion", "update"] as const) {
  t.test(
    `the ${change} of an evicted object whose key is gone ends watches and leaves the cache working`,
    async (t) => {
      const clock = new FakeClock();
      let transformer = withKey("k1");
      const inner = createMemoryStore({ clock });
      const store = new EncryptedStore(inner, () => transformer);
      const objects = new ObjectStore<Widget>({ store, kind: widgetKind, prefix: "/registry" });
      const feed = new StoreFeed({ store, range: prefixRange("/registry/"), clock, log: silentLogger });
      t.teardown(() => feed[Symbol.asyncDispose]());
      const key = (name: string): string => objects.key("default", name);
      const color = "x".repeat(10_000);
      // The limit is below the size of any object.
      const memory = new CacheMemory(1);
      for (const name of ["a", "b"]) await objects.create(key(name), makeWidget(name, { color }));
      await using cache = new WatchCache({ feed, objects, clock, log: silentLogger, memory });
      await cache.ready();
      const from = cache.revision();
      const { signal } = new AbortController();
      const watch = cache.watch({ prefix: objects.prefix(), from, signal });
      const { modified } = (await inner.get(key("a")))!;
      transformer = withKey("k2");
      if (change === "deletion") await inner.delete(key("a"), modified);
      else {
        const { value } = (await copyOf(inner, key("a")))!;
        await inner.update(key("a"), await transformer.encrypt(value, key("a")), modified);
      }
      await cache.waitFor(store.current());
      await t.rejects(watch.next(), { name: "StatusError" });
      const later = cache.watch({ prefix: objects.prefix(), from: cache.revision(), signal });
      await objects.create(key("c"), makeWidget("c", { color }));
      await cache.waitFor(store.current());
      t.match((await later.next()).value, { type: "ADDED" });
      t.equal(cache.get(key("a")) === undefined, change === "deletion");
      t.ok(cache.get(key("c"))?.object.color === color);
    },
  );
}

/** The value as it was before its key was removed. */
async function copyOf(inner: ReturnType<typeof createMemoryStore>, key: string) {
  return await new EncryptedStore(inner, () => withKey("k1")).get(key);
}
