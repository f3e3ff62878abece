import t from "tap";
import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import { StatusError } from "../../api/status.ts";
import { objectsOf, syncOnce } from "../../testing/controllers/sync-once.ts";
import type { ControllerDeps } from "../controller.ts";
import { runNodeIpamController } from "./node-ipam-controller.ts";

const node = (name: string, metadata: Node["metadata"] = {}): Node => ({ metadata: { name, uid: name, ...metadata } });

const runWith = (range: string) => async (deps: ControllerDeps) =>
  await runNodeIpamController({ ...deps, options: { ...deps.options, clusterCidrs: [range] } });
/** With two blocks for nodes. */
const run = runWith("10.0.0.0/23");

const show = ({ verb, object }: { readonly verb: string; readonly object: object }): string => {
  const { metadata, spec, reason, message } = object as Node & { readonly reason?: string; readonly message?: string };
  return reason === undefined ? `${verb} ${metadata?.name} ${spec?.podCIDRs}` : `event ${message}`;
};

/** Fails the first writes of the node with the status. */
function failFirst(times: number, code: number): (write: string) => void {
  let failed = 0;
  return (write) => {
    if (!write.startsWith("patch a") || failed++ >= times) return;
    throw new StatusError(code, code === 403 ? "Forbidden" : "Timeout", "refused");
  };
}

t.test("a node that is being deleted gets no pod CIDR", async (t) => {
  const deletionTimestamp = "2026-01-01T00:00:00Z";
  const nodes = objectsOf(nodeKind, node("a", { deletionTimestamp, finalizers: ["x"] }), node("b"));
  t.same(await syncOnce(run, nodes, [], { show }), ["patch b 10.0.0.0/24"]);
});

t.test("the write of a pod CIDR is tried three times before an event", async (t) => {
  const write = "patch a 10.0.0.0/24";
  const owner = objectsOf(nodeKind, node("a"));
  t.same(await syncOnce(run, owner, [], { show, fail: failFirst(2, 504) }), [write, write, write]);
  const failing = await syncOnce(run, owner, [], { show, fail: failFirst(3, 504) });
  t.same(failing.slice(0, 4), [write, write, write, "event Node a status is now: CIDRAssignmentFailed"]);
});

t.test("a pod CIDR goes to another node if its write was refused, and to none if its outcome is unknown", async (t) => {
  const owner = objectsOf(nodeKind, node("a"), node("b"));
  // The range has one block.
  const writtenAfter = async (code: number): Promise<readonly string[]> => {
    const writes = await syncOnce(runWith("10.0.0.0/24"), owner, [], {
      show,
      fail: failFirst(3, code),
      advanceMs: 500,
    });
    return writes.filter((write) => /^patch . /.test(write)).slice(3);
  };
  t.same(await writtenAfter(504), ["patch a 10.0.0.0/24"]);
  t.same(await writtenAfter(403), ["patch b 10.0.0.0/24"]);
});
