/** The operations of a resource: create, get, list, watch, update, patch, delete, deletecollection, and discovery. */
import assert from "node:assert/strict";
import type { Json } from "./api.ts";
import type { Behaviour, KubeObject, TestNamespace } from "./behaviour.ts";

export interface Change {
  /** Merged by a patch; then part of the object. */
  readonly patch: object;
  /** Merged by an update; then part of the object. */
  readonly update: object;
}

export interface ResourceOperations {
  /** Objects of different names, by `index` from 0 to 3. The last one does not get the label of the others. */
  readonly make: (at: TestNamespace, index: number) => KubeObject | Promise<KubeObject>;
  /** Changes beside those of labels and annotations. */
  readonly change?: Change;
  /** Subresources with changes made through them. */
  readonly subresources?: Readonly<Record<string, Change>>;
  /** Also checks that discovery has group, version, resource, subresources and verbs. */
  readonly discovered?: boolean;
}

const LABEL = "conformance-of";
const verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const metadataChange: Change = {
  patch: { metadata: { labels: { patched: "true" }, annotations: { patched: "true" } } },
  update: { metadata: { labels: { updated: "true" }, annotations: { updated: "true" } } },
};

/** Applies a JSON merge patch. */
function merge(target: Json, patch: Json): Json {
  if (patch === null || typeof patch !== "object" || Array.isArray(patch)) return patch;
  const result = { ...target };
  for (const [name, value] of Object.entries(patch)) result[name] = merge(result[name], value);
  return result;
}

function hasPart(object: Json, part: Json, what: string): void {
  assert.partialDeepStrictEqual(object, part, `${what}: ${JSON.stringify(object)}`);
}

/** Patches and updates through a path; each change is seen by a subsequent read. */
async function showChange(at: TestNamespace, path: string, { patch, update }: Change): Promise<void> {
  await at.api.get(path);
  hasPart(await at.api.patch(path, patch), patch, `the answer to a patch of ${path}`);
  hasPart(await at.api.get(path), patch, `${path} after a patch`);
  await at.api.update(path, (object) => Object.assign(object, merge(object, update)));
  hasPart(await at.api.get(path), update, `${path} after an update`);
}

async function showDiscovery(at: TestNamespace, path: string, subresources: readonly string[]): Promise<void> {
  const [, group = "", version = ""] = /^\/apis\/([^/]+)\/([^/]+)\//.exec(path) ?? [];
  const resource = path.split("/").at(-1) ?? "";
  const { groups } = await at.api.get("/apis");
  const found = groups.find(({ name }: Json) => name === group);
  const groupVersion = `${group}/${version}`;
  const versionsOf = (entry: Json): readonly string[] => entry.versions.map((each: Json) => each.groupVersion);
  assert.ok(versionsOf(found).includes(groupVersion), `/apis has ${groupVersion}`);
  assert.ok(versionsOf(await at.api.get(`/apis/${group}`)).includes(groupVersion), `/apis/${group} has ${version}`);
  const { resources } = await at.api.get(`/apis/${groupVersion}`);
  const verbsOf = (name: string): readonly string[] => resources.find((each: Json) => each.name === name)?.verbs ?? [];
  assert.deepEqual([...verbsOf(resource)].sort(), verbs, resource);
  for (const name of subresources) {
    assert.ok(verbsOf(`${resource}/${name}`).includes("update"), `${resource}/${name} can be updated`);
    assert.ok(verbsOf(`${resource}/${name}`).includes("patch"), `${resource}/${name} can be patched`);
  }
}

/** Shows all operations of a resource, with the events of a watch. */
export function testOperations({ make, change, subresources = {}, discovered = false }: ResourceOperations): Behaviour {
  return async (at) => {
    const objects = await Promise.all(
      [0, 1, 2].map(async (index): Promise<KubeObject> => {
        const object = await make(at, index);
        const { labels } = object.metadata as { readonly labels?: object };
        return { ...object, metadata: { ...object.metadata, labels: { ...labels, [LABEL]: at.name } } };
      }),
    );
    const [first, second, third] = objects as [KubeObject, KubeObject, KubeObject];
    const collection = at.pathOf(first.apiVersion, first.kind);
    if (discovered) await showDiscovery(at, collection, Object.keys(subresources));
    const everywhere = collection.replace(/\/namespaces\/[^/]+/, "");
    const selector = `labelSelector=${LABEL}%3D${at.name}`;
    const names = async (path: string): Promise<readonly string[]> =>
      (await at.api.list(`${path}?${selector}`)).map(({ metadata }) => metadata.name).sort();
    using watch = await at.api.watch(`${collection}?${selector}`);

    await at.create(first);
    const path = at.pathOfObject(first);
    const { metadata } = await at.get(first);
    assert.equal(metadata.name, first.metadata.name);
    assert.ok(metadata.uid);
    await at.create(second);
    await at.create(third);
    const other = await make(at, 3);
    await at.create(other);
    const all = objects.map((object) => object.metadata.name).sort();
    assert.deepEqual(await names(collection), all);
    assert.deepEqual(await names(everywhere), all, "in all namespaces");

    await showChange(at, path, metadataChange);
    if (change !== undefined) await showChange(at, path, change);
    for (const [name, each] of Object.entries(subresources)) await showChange(at, `${path}/${name}`, each);
    const named = (object: Json): boolean => object.metadata.name === first.metadata.name;
    await watch.wait("ADDED", named);
    await watch.wait("MODIFIED", (object) => named(object) && object.metadata.annotations?.updated === "true");

    await at.api.delete(path);
    await watch.wait("DELETED", named);
    await at.api.waitGone(path);
    assert.deepEqual(await names(collection), [second.metadata.name, third.metadata.name].sort());
    await at.api.delete(`${collection}?${selector}`);
    await at.api.waitGone(at.pathOfObject(second));
    await at.api.waitGone(at.pathOfObject(third));
    assert.deepEqual(await names(collection), []);
    assert.equal((await at.get(other)).metadata.deletionTimestamp, undefined, "the object without the label");
    await at.api.delete(at.pathOfObject(other));
  };
}
