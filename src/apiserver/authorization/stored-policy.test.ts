import t from "tap";
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { Registries } from "../../registry/registries.ts";
import { createStoredPolicy } from "./stored-policy.ts";

const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "viewer" };
const rules = [{ verbs: ["get"], apiGroups: [""], resources: ["pods"] }];
const user = { name: "eve", uid: "", groups: [], extra: {} };

/** A cached object, which counts how often it is decoded. */
class Item {
  readonly key: string;
  readonly #object: ApiObject | undefined;
  decoded = 0;

  constructor(key: string, object: ApiObject | undefined) {
    this.key = key;
    this.#object = object;
  }

  get object(): ApiObject {
    this.decoded++;
    if (this.#object === undefined) throw new Error("cannot be decoded");
    return this.#object;
  }
}

class Fixture {
  readonly items = new Map<string, Item[]>();
  #changes = 0;

  readonly registries = {
    of: ({ plural }: Kind) => ({
      cache: { changes: this.#changes, list: () => ({ items: this.items.get(plural) ?? [] }) },
      objects: { prefix: () => "" },
    }),
  } as unknown as Registries;

  set(plural: string, ...items: readonly Item[]): void {
    this.#changes++;
    this.items.set(plural, [...items]);
  }
}

function binding(name: string, subject = "eve"): Item {
  return new Item(name, { metadata: { name }, roleRef, subjects: [{ kind: "User", name: subject }] } as ApiObject);
}

t.test("createStoredPolicy() decodes only what has changed", async (t) => {
  const f = new Fixture();
  const policy = createStoredPolicy(f.registries);
  const role = new Item("viewer", { metadata: { name: "viewer" }, rules } as ApiObject);
  const [a, b] = [binding("a"), binding("b")];
  f.set("clusterroles", role);
  f.set("clusterrolebindings", a);
  const bindings = () => policy.grantsFor(user, "").map(({ by }) => by.split(" of ")[0]);
  t.same(bindings(), ['ClusterRoleBinding "a"']);
  f.set("clusterrolebindings", a, b);
  t.same(bindings(), ['ClusterRoleBinding "a"', 'ClusterRoleBinding "b"']);
  t.same([role.decoded, a.decoded, b.decoded], [1, 1, 1]);
  f.set("clusterrolebindings", binding("a", "adam"), b);
  t.same(bindings(), ['ClusterRoleBinding "b"'], "another object under the same key, whatever its revision");
  f.set("clusterrolebindings");
  t.same(bindings(), []);
});

t.test("createStoredPolicy() fails each request while an object cannot be decoded", async (t) => {
  const f = new Fixture();
  const policy = createStoredPolicy(f.registries);
  f.set("clusterrolebindings", binding("a"));
  t.equal(policy.grantsFor(user, "").length, 1);
  f.set("clusterrolebindings", new Item("0", undefined));
  for (let count = 0; count < 2; count++) t.throws(() => policy.grantsFor(user, ""), { message: "cannot be decoded" });
  f.set("clusterrolebindings");
  t.same(policy.grantsFor(user, ""), []);
});

t.test("prepare() follows many changes in several turns, and requests wait for all of them", async (t) => {
  const f = new Fixture();
  const policy = createStoredPolicy(f.registries);
  const busy = (name: string): Item => {
    const item = binding(name);
    const { object } = item;
    return Object.defineProperty(item, "object", {
      get() {
        for (const end = performance.now() + 3; performance.now() < end; );
        return object;
      },
    });
  };
  t.ok(policy.prepare!(), "at first");
  await policy.prepare!();
  t.equal(policy.prepare!(), undefined);
  f.set("clusterrolebindings", ...["a", "b", "c", "d", "e", "f", "g", "h"].map(busy));
  let turns = 0;
  const count = (): void => {
    turns++;
    timer = setImmediate(count);
  };
  let timer = setImmediate(count);
  const first = policy.prepare!();
  t.equal(policy.prepare!(), first, "one for all requests");
  await first;
  clearImmediate(timer);
  t.ok(turns > 1, `${turns} turns`);
  t.equal(policy.prepare!(), undefined);
  t.equal(policy.grantsFor(user, "").length, 8);
  f.set("clusterrolebindings", new Item("0", undefined));
  for (let count = 0; count < 2; count++) await t.rejects(policy.prepare!()!, { message: "cannot be decoded" });
  f.set("clusterrolebindings", binding("a"));
  await policy.prepare!();
  t.equal(policy.grantsFor(user, "").length, 1, "after it can be decoded");
});

t.test("prepare() follows the latest changes when there are others between its turns", async (t) => {
  const f = new Fixture();
  const policy = createStoredPolicy(f.registries);
  const items = Array.from({ length: 20_000 }, (_, i) => binding(`b${i}`));
  f.set("clusterrolebindings", ...items);
  const following = policy.prepare!();
  f.set("clusterrolebindings", binding("last"));
  await following;
  t.equal(policy.grantsFor(user, "").length, 1);
});
