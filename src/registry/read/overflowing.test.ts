/** Objects of a conversion webhook that are too large to be cached: clients read and watch the store. */
import t from "tap";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { type ConfigMap, configMap } from "../../api/core/config-map/schema.ts";
import type { Converter, Kind } from "../../api/kind.ts";
import { CacheMemory } from "../../storage/watch/cache-memory.ts";
import { fixture, rejectionStatus } from "../../testing/registry/registry-fixture.ts";
import { create } from "../create.ts";
import { get } from "../get.ts";
import { list } from "../list.ts";
import { Registry } from "../registry.ts";
import { watch } from "../watch.ts";

const BUDGET = 400_000;
const VALUE_BYTES = 10_000;

/** The stored version is v2; its objects are read as v1. */
function convertedKind(): Kind<ConfigMap> {
  const stored: Kind<ConfigMap> = {
    ...configMapKind,
    group: "example.com",
    version: "v2",
    schema: { ...configMap, unstructured: true },
  };
  const converter: Converter = {
    storageKind: stored,
    kindOf: (version) => (version === "v2" ? stored : undefined),
    convert: async (objects, version) => objects.map((object) => ({ ...object, apiVersion: `example.com/${version}` })),
  };
  const kind: Kind<ConfigMap> = { ...stored, version: "v1", converter };
  return kind;
}

t.test("the cache of a converted kind keeps a quarter of the budget; then clients use the store", async (t) => {
  await using f = fixture();
  const memory = new CacheMemory(BUDGET);
  await using registry = new Registry(convertedKind(), f.registries.deps, { feed: f.registries.feed, memory });
  const scope = f.scope();
  const data = { text: "x".repeat(VALUE_BYTES) };
  const make = (name: string) => create(registry, scope, { metadata: { name, namespace: "default" }, data });
  const controller = new AbortController();
  const seen: string[] = [];
  const follow = async (): Promise<void> => {
    for await (const event of await watch(registry, f.scope("default", controller.signal), {})) {
      if (event.type !== "BOOKMARK") seen.push(`${event.type} ${event.item.object.metadata?.name}`);
    }
  };
  await make("a0");
  let following = follow();
  await make("a1");
  await registry.cache.waitFor(f.store.current());
  t.ok(memory.converted.bytes > 2 * VALUE_BYTES, "values are counted");
  for (let i = 2; i < 20; i++) await make(`a${i}`);
  await following;
  t.ok(registry.cache.isOverflowing);
  t.equal(memory.converted.bytes, 0, "nothing is kept");
  t.ok(seen.includes("ADDED a1"));
  seen.length = 0;
  t.equal((await list(registry, scope, {})).items.length, 20);
  t.match((await get(registry, scope, "a5")).object.data, data);
  t.equal((await rejectionStatus(get(registry, scope, "none"))).code, 404);
  following = follow();
  await make("b");
  for (let turn = 0; turn < 100 && !seen.includes("ADDED b"); turn++) await f.clock.advance(10);
  t.equal(seen.length, 21, "a watch of the store");
  controller.abort();
  await following.catch(() => {});
});
