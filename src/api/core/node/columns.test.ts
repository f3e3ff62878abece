import t from "tap";
import { nodeColumns } from "./columns.ts";
import type { Node } from "./schema.ts";

function row(node: Node): readonly unknown[] {
  return nodeColumns.map((column) => column.cell(node, Date.parse("2026-01-01T01:00:00Z")));
}

t.test("nodeColumns show state, roles and addresses as kubectl does", async (t) => {
  const node: Node = {
    metadata: {
      name: "shop-1",
      creationTimestamp: "2026-01-01T00:00:00Z",
      labels: { "node-role.kubernetes.io/worker": "", "node-role.svc.io/control-plane": "", other: "x" },
    },
    spec: { unschedulable: true },
    status: {
      conditions: [{ type: "Ready", status: "True" }],
      addresses: [{ type: "InternalIP", address: "192.0.2.7" }],
    },
  };
  t.same(row(node), [
    "shop-1",
    "Ready,SchedulingDisabled",
    "control-plane,worker",
    "60m",
    "",
    "192.0.2.7",
    "<none>",
    "<unknown>",
    "<unknown>",
    "<unknown>",
  ]);
});

t.test("nodeColumns show Unknown for a node without a Ready condition", async (t) => {
  t.equal(row({ metadata: { name: "n" } })[1], "Unknown");
});
