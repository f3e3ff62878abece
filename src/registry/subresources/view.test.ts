import t from "tap";
import { replicaSetKind } from "../../api/apps/replica-set/kind.ts";
import type { Scale } from "../../api/autoscaling/scale/schema.ts";
import { type Fixture, fixture, rejectionStatus } from "../../testing/registry/registry-fixture.ts";
import { create } from "../create.ts";
import { get } from "../get.ts";
import type { Scope } from "../scope.ts";
import { applyView, patchView, updateView } from "./view.ts";

const view = replicaSetKind.subresources.find(({ name }) => name === "scale")?.view;
if (view === undefined) throw new Error("replica sets have no scale");

const labels = { app: "web" };
const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "web:1" }] } };

/** The scope of a request under `/apis/apps`. */
const scopeOf = (f: Fixture): Scope => ({ ...f.scope(), group: "apps" });

async function withWeb(f: Fixture) {
  const registry = f.registries.of(replicaSetKind);
  const spec = { replicas: 2, selector: { matchLabels: labels }, template };
  await create(registry, scopeOf(f), { metadata: { name: "web", labels }, spec });
  return registry;
}

const scale = (replicas: number, metadata: object = {}): Scale => ({
  metadata: { name: "web", ...metadata },
  spec: { replicas },
});

t.test("updateView() and patchView() update the object through its view", async (t) => {
  await using f = fixture();
  const registry = await withWeb(f);
  const seen = await updateView(registry, scopeOf(f), "web", scale(3, { labels: { app: "other" } }), { view });
  t.match(seen, { metadata: { name: "web", resourceVersion: /./ }, spec: { replicas: 3 }, status: { replicas: 0 } });
  const decode = (value: unknown): Scale => value as Scale;
  const merge = { type: "merge", value: { spec: { replicas: 4 } } } as const;
  t.match(await patchView(registry, scopeOf(f), "web", merge, { view, decode }), { spec: { replicas: 4 } });
  const { object } = await get(registry, scopeOf(f), "web");
  t.match(object, { metadata: { labels, generation: 3 }, spec: { replicas: 4 } });
});

t.test("updateView() stores nothing in a dry run, or for a stale or invalid view", async (t) => {
  await using f = fixture();
  const registry = await withWeb(f);
  const before = f.store.current();
  const tried = await updateView(registry, scopeOf(f), "web", scale(9), { view, dryRun: true });
  t.match(tried, { spec: { replicas: 9 } });
  const refused = async (sent: Scale) =>
    (await rejectionStatus(updateView(registry, scopeOf(f), "web", sent, { view }))).code;
  t.equal(await refused(scale(1, { resourceVersion: "1" })), 409);
  t.equal(await refused(scale(1, { uid: "other" })), 409);
  t.equal(await refused(scale(1, { namespace: "other" })), 400);
  t.equal(await refused(scale(-1)), 422);
  const nameless = updateView(registry, scopeOf(f), "none", { spec: { replicas: 1 } } as Scale, { view });
  t.equal((await rejectionStatus(nameless)).code, 400, "the name is checked before the object is read");
  t.equal(f.store.current(), before);
});

t.test("applyView() applies the fields of the view, and creates no object", async (t) => {
  await using f = fixture();
  const registry = await withWeb(f);
  const options = { view, fieldManager: "scaler", subresource: "scale", force: true };
  const configuration = { apiVersion: "autoscaling/v1", kind: "Scale", ...scale(5) };
  t.match(await applyView(registry, scopeOf(f), "web", configuration, options), { spec: { replicas: 5 } });
  const { object } = await get(registry, scopeOf(f), "web");
  const { manager, subresource, fieldsV1 } = object.metadata?.managedFields?.[0] ?? {};
  t.same(
    { manager, subresource, fieldsV1 },
    {
      manager: "scaler",
      subresource: "scale",
      fieldsV1: { "f:spec": { "f:replicas": {} } },
    },
  );
  const missing = { ...configuration, metadata: { name: "none" } };
  t.equal((await rejectionStatus(applyView(registry, scopeOf(f), "none", missing, options))).code, 404);
  const other = { ...configuration, kind: "ReplicaSet" };
  t.equal((await rejectionStatus(applyView(registry, scopeOf(f), "web", other, options))).code, 400);
});
