import t from "tap";
import { boolean, fieldsV1, int32, list, map, object, optional, pointer, required, string, time } from "../define.ts";
import { goStruct } from "./go-syntax.ts";

const inner = object("flowcontrol/v1.GroupSubject", { name: required(1, string) });
const outer = object("flowcontrol/v1.Sample", {
  apiGroups: required(1, list(string)),
  count: optional(2, int32),
  clusterScope: optional(3, boolean),
  group: pointer(4, inner),
  reference: required(5, inner),
  items: optional(6, list(inner)),
});

t.test("goStruct() formats a value as Go's %#v", async (t) => {
  t.equal(
    String(
      goStruct(outer, {
        apiGroups: ["*", 'a"b'],
        count: 5,
        clusterScope: true,
        group: { name: "x" },
        reference: { name: "y" },
        items: [{ name: "z" }],
      }),
    ),
    'flowcontrol.Sample{APIGroups:[]string{"*", "a\\"b"}, Count:5, ClusterScope:true, ' +
      'Group:(*flowcontrol.GroupSubject)(0xc000000000), Reference:flowcontrol.GroupSubject{Name:"y"}, ' +
      'Items:[]flowcontrol.GroupSubject{flowcontrol.GroupSubject{Name:"z"}}}',
  );
  t.equal(
    String(goStruct(outer, {})),
    "flowcontrol.Sample{APIGroups:[]string(nil), Count:0, ClusterScope:false, " +
      'Group:(*flowcontrol.GroupSubject)(nil), Reference:flowcontrol.GroupSubject{Name:""}, ' +
      "Items:[]flowcontrol.GroupSubject(nil)}",
  );
});

t.test("goStruct() formats metadata: maps, times, and types that all versions share", async (t) => {
  const metadata = object("meta/v1.Sample", {
    labels: optional(1, map(string)),
    creationTimestamp: optional(2, time),
    deletionTimestamp: pointer(3, time),
    fieldsV1: pointer(4, fieldsV1),
  });
  const zero = "time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)";
  t.equal(
    String(goStruct(metadata, {})),
    `v1.Sample{Labels:map[string]string(nil), CreationTimestamp:${zero}, DeletionTimestamp:<nil>, ` +
      "FieldsV1:(*v1.FieldsV1)(nil)}",
  );
  const full = { labels: { b: "2", a: "1" }, deletionTimestamp: "2026-11-22T05:06:07Z", fieldsV1: {} };
  t.equal(
    String(goStruct(metadata, full)),
    `v1.Sample{Labels:map[string]string{"a":"1", "b":"2"}, CreationTimestamp:${zero}, ` +
      "DeletionTimestamp:time.Date(2026, time.November, 22, 5, 6, 7, 0, time.Local), " +
      "FieldsV1:(*v1.FieldsV1)(0xc000000000)}",
  );
});
