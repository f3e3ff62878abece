import t from "tap";
import { boolean, int32, list, object, optional, pointer, required, string } from "../define.ts";
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
