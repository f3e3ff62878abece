import t from "tap";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Kind } from "../../api/kind.ts";
import type { ObjectMeta, OwnerReference } from "../../api/meta/object-meta.ts";
import { OwnershipGraph } from "./ownership-graph.ts";

const maps = configMapKind as Kind;
const pods = podKind as Kind;

function fixture() {
  const queued = new Set<string>();
  const misplaced: string[] = [];
  const graph = new OwnershipGraph({
    enqueue: (uid) => void queued.add(uid),
    invalidNamespace: ({ uid }) => void misplaced.push(uid),
  });
  /** The uids that were queued since the last call. */
  const takeQueued = (): readonly string[] => {
    const found = [...queued].sort();
    queued.clear();
    return found;
  };
  return { graph, since: takeQueued, misplaced };
}

const object = (name: string, more: Partial<ObjectMeta> = {}): ObjectMeta => ({
  name,
  uid: name,
  namespace: "ns",
  ...more,
});

const by = (name: string, more: Partial<OwnerReference> = {}): OwnerReference => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  name,
  uid: name,
  ...more,
});

const DELETED = { deletionTimestamp: "2026-01-01T00:00:00Z" };

t.test("OwnershipGraph keeps only owners and dependents", (t) => {
  const { graph } = fixture();
  graph.observe(maps, object("alone"));
  t.equal(graph.size, 0);
  graph.observe(maps, object("child", { ownerReferences: [by("parent")] }));
  t.equal(graph.size, 2);
  graph.observe(maps, object("parent"));
  t.equal(graph.size, 2);
  graph.observe(maps, object("child"));
  t.equal(graph.size, 0, "orphaned");
  graph.observe(maps, object("child", { ownerReferences: [by("parent")] }));
  graph.forget("child");
  t.equal(graph.size, 0, "deleted");
  t.end();
});

t.test("OwnershipGraph queues an unobserved owner for verification once", (t) => {
  const { graph, since } = fixture();
  graph.observe(maps, object("child", { ownerReferences: [by("parent")] }));
  t.same(since(), ["parent"]);
  graph.observe(maps, object("parent"));
  t.same(since(), []);
  graph.observe(maps, object("second", { ownerReferences: [by("parent")] }));
  t.same(since(), []);
  graph.forget("parent");
  t.same(since(), ["child", "second"]);
  graph.observe(maps, object("late", { ownerReferences: [by("parent")] }));
  t.same(since(), ["parent"], "a later dependent queues it again");
  t.end();
});

t.test("OwnershipGraph queues owners in foreground deletion and their dependents", (t) => {
  const { graph, since } = fixture();
  const blocking = [by("parent", { blockOwnerDeletion: true })];
  graph.observe(maps, object("parent", { ownerReferences: [by("root")] }));
  for (const name of ["a", "b", "c"]) graph.observe(maps, object(name, { ownerReferences: blocking }));
  since();
  const finalizers = ["foregroundDeletion"];
  graph.observe(maps, object("parent", { ownerReferences: [by("root")], finalizers, ...DELETED }));
  t.same(since(), ["a", "b", "c", "parent"]);
  graph.forget("a");
  t.same(since(), ["parent"], "one was deleted");
  graph.observe(maps, object("b", { ownerReferences: [by("parent")] }));
  t.same(since(), ["parent"], "one no longer blocks");
  graph.observe(maps, object("c"));
  t.same(since(), ["parent"], "one was orphaned");
  graph.observe(maps, object("d", { ownerReferences: blocking }));
  t.same(since(), [], "one was created later: the end of another one queues the owner, which deletes it");
  t.end();
});

t.test("OwnershipGraph queues dependents whose reference does not match the object with its uid", (t) => {
  const { graph, since, misplaced } = fixture();
  graph.observe(maps, object("parent", { ownerReferences: [by("root")] }));
  since();
  graph.observe(maps, object("same-name", { ownerReferences: [by("parent", { apiVersion: "v1", kind: "Secret" })] }));
  graph.observe(pods, object("other-name", { ownerReferences: [{ ...by("parent"), name: "another" }] }));
  graph.observe(pods, object("far", { namespace: "other", ownerReferences: [by("parent")] }));
  graph.observe(pods, object("right", { ownerReferences: [by("parent")] }));
  t.same(since(), ["far", "other-name", "same-name"]);
  t.same(misplaced, ["far"]);
  t.end();
});

t.test("OwnershipGraph removes objects that a new list does not contain", (t) => {
  const { graph, since } = fixture();
  graph.observe(maps, object("parent", { ownerReferences: [by("root")] }));
  graph.observe(pods, object("child", { ownerReferences: [by("parent")] }));
  since();
  graph.replaceAll(maps, new Set());
  t.same(since(), ["child"]);
  graph.replaceAll(pods, new Set(["child"]));
  t.ok(graph.get("child"));
  t.end();
});
