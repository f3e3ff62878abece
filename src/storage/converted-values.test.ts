import t from "tap";
import type { Converter, JsonObject, Kind } from "../api/kind.ts";
import { StatusError } from "../api/status.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { makeWidget, type Widget, widgetKind } from "../testing/storage/widget.ts";
import { createMemoryStore } from "./memory.ts";
import { ObjectStore } from "./object-store.ts";
import { prefixRange } from "./store.ts";

/** Widgets of which v2 has the color reversed. */
class Mirror implements Converter {
  readonly calls: string[] = [];
  readonly #storage: string;
  fails = false;

  constructor(storage: string) {
    this.#storage = storage;
  }

  get storageKind(): Kind {
    return this.kindOf(this.#storage);
  }

  kindOf(version: string): Kind {
    return { ...widgetKind, version, converter: this } as Kind;
  }

  async convert(objects: readonly JsonObject[], version: string): Promise<readonly JsonObject[]> {
    if (this.fails) throw new StatusError(500, "", "no answer");
    this.calls.push(`${objects.map(({ apiVersion }) => apiVersion).join(" ")} to ${version}`);
    return objects.map(({ apiVersion, color, ...object }) => {
      const turned = String(apiVersion).endsWith(version) ? color : [...String(color)].reverse().join("");
      return { ...object, apiVersion: `test.svc.io/${version}`, color: turned };
    });
  }
}

function setUp(storage = "v1", mediaType: "application/json" | "application/yaml" = "application/json") {
  const store = createMemoryStore({ clock: new FakeClock() });
  const mirror = new Mirror(storage);
  const objectsOf = (version: string, converter = mirror) =>
    new ObjectStore({
      store,
      kind: { ...widgetKind, version, converter } as Kind<Widget>,
      prefix: "/registry",
      mediaType,
    });
  const key = objectsOf("v1").key("default", "a");
  const stored = async (): Promise<string> => String((await store.get(key))?.value);
  return { store, mirror, objectsOf, key, stored };
}

t.test("ObjectStore converts stored objects to the version of its kind", async (t) => {
  const { store, mirror, objectsOf, key, stored } = setUp();
  const [one, two] = [objectsOf("v1"), objectsOf("v2")];
  t.equal((await one.create(key, makeWidget("a", { color: "red" }))).color, "red");
  t.same(mirror.calls, []);
  t.equal((await two.get(key))?.color, "der");
  t.match(await two.guaranteedUpdate(key, (widget) => ({ ...widget, color: "eulb" })), { color: "eulb" });
  t.match(JSON.parse(await stored()), { apiVersion: "test.svc.io/v1", color: "blue" });
  t.same(mirror.calls.slice(-2), ["test.svc.io/v2 to v1", "test.svc.io/v1 to v2"]);
  const calls = mirror.calls.length;
  const { items } = await store.list(prefixRange(two.prefix()));
  t.match(
    (await two.toKindVersion(items)).map((item) => two.decode(item)),
    [{ color: "eulb" }],
  );
  t.equal(mirror.calls.length, calls, "a value that was just written is not converted again");
  t.match((await two.list(two.prefix())).items, [{ color: "eulb" }]);
  t.equal(mirror.calls.length, calls + 1, "but only once");
  t.equal((await two.roundTrip(makeWidget("b", { color: "x" }))).color, "x");
  mirror.fails = true;
  await t.rejects(two.get(key), { message: "no answer" });
  await t.rejects(two.create("/registry/widgets/default/b", makeWidget("b")), { message: "no answer" });
  t.equal((await one.get(key))?.color, "blue");
});

t.test(
  "ObjectStore stores an object of an old version in the storage version at the next write, and then no unchanged object",
  async (t) => {
    const { objectsOf, key, stored } = setUp();
    await objectsOf("v1").create(key, makeWidget("a", { color: "red" }));
    for (const version of ["v1", "v2"]) {
      const objects = objectsOf(version, new Mirror(version === "v1" ? "v2" : "v1"));
      const before = await objects.get(key);
      const moved = await objects.guaranteedUpdate(key, (widget) => widget);
      t.not(moved.metadata?.resourceVersion, before?.metadata?.resourceVersion);
      t.match(await stored(), version === "v1" ? '"test.svc.io/v2"' : '"test.svc.io/v1"');
      const again = await objects.guaranteedUpdate(key, (widget) => widget);
      t.equal(again.metadata?.resourceVersion, moved.metadata?.resourceVersion);
    }
  },
);

t.test("ObjectStore converts objects stored as YAML", async (t) => {
  const { objectsOf, key, stored } = setUp("v1", "application/yaml");
  const [one, two] = [objectsOf("v1"), objectsOf("v2")];
  const created = await one.create(key, makeWidget("a", { color: "red" }));
  t.match(await stored(), /^apiVersion: test.svc.io\/v1$/m);
  t.equal((await two.get(key))?.color, "der");
  const same = await one.guaranteedUpdate(key, (widget) => widget);
  t.equal(same.metadata?.resourceVersion, created.metadata?.resourceVersion);
});

t.test("ObjectStore reports the key of a value that is not an object, with and without a converter", async (t) => {
  const { store, objectsOf, key } = setUp();
  await store.create(key, Buffer.from("{nothing"));
  await t.rejects(objectsOf("v2").get(key), { code: "corrupt" });
});
