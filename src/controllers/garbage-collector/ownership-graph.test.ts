import t from "tap";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Kind } from "../../api/kind.ts";
import type { ObjectMeta, OwnerReference } from "../../api/meta/object-meta.ts";
import { OwnershipGraph } from "./ownership-graph.ts";

const maps = configMapKind as Kind;
const pods = podKind as Kind;

function fixture() {
  const looked = new Set<string>();
  const misplaced: string[] = [];
  const graph = new OwnershipGraph({
    look: (uid) => void looked.add(uid),
    misplaced: ({ uid }) => void misplaced.push(uid),
  });
  /** What was looked at since the last time. */
  const since = (): readonly string[] => {
    const found = [...looked].sort();
    looked.clear();
    return found;
  };
  return { graph, since, misplaced };
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

const LEAVING = { deletionTimestamp: "2026-01-01T00:00:00Z" };

t.test("OwnershipGraph keeps what owns or is owned, and nothing else", (t) => {
  const { graph } = fixture();
  graph.observe(maps, object("alone"));
  t.equal(graph.size, 0);
  graph.observe(maps, object("child", { ownerReferences: [by("parent")] }));
  t.equal(graph.size, 2);
  graph.observe(maps, object("parent"));
  t.equal(graph.size, 2);
  graph.observe(maps, object("child"));
  t.equal(graph.size, 0, "let go");
  graph.observe(maps, object("child", { ownerReferences: [by("parent")] }));
  graph.forget("child");
  t.equal(graph.size, 0, "deleted");
  t.end();
});

t.test("OwnershipGraph has owners verified that nobody told of, once", (t) => {
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
  t.same(since(), ["parent"], "who comes after has it verified again");
  t.end();
});

t.test("OwnershipGraph wakes owners that wait, and what they wait for", (t) => {
  const { graph, since } = fixture();
  const blocking = [by("parent", { blockOwnerDeletion: true })];
  graph.observe(maps, object("parent", { ownerReferences: [by("root")] }));
  for (const name of ["a", "b", "c"]) graph.observe(maps, object(name, { ownerReferences: blocking }));
  since();
  const finalizers = ["foregroundDeletion"];
  graph.observe(maps, object("parent", { ownerReferences: [by("root")], finalizers, ...LEAVING }));
  t.same(since(), ["a", "b", "c", "parent"]);
  graph.forget("a");
  t.same(since(), ["parent"], "one is gone");
  graph.observe(maps, object("b", { ownerReferences: [by("parent")] }));
  t.same(since(), ["parent"], "one does not block any more");
  graph.observe(maps, object("c"));
  t.same(since(), ["parent"], "one has left the family");
  graph.observe(maps, object("d", { ownerReferences: blocking }));
  t.same(since(), ["d"], "one comes late");
  t.end();
});

t.test("OwnershipGraph notices references that name another object than their uid does", (t) => {
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

t.test("OwnershipGraph forgets what a new list does not name", (t) => {
  const { graph, since } = fixture();
  graph.observe(maps, object("parent", { ownerReferences: [by("root")] }));
  graph.observe(pods, object("child", { ownerReferences: [by("parent")] }));
  since();
  graph.retain(maps, new Set());
  t.same(since(), ["child"]);
  graph.retain(pods, new Set(["child"]));
  t.ok(graph.get("child"));
  t.end();
});
