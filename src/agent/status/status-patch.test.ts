import t from "tap";
import type { PodStatus } from "../../api/core/pod/schema.ts";
import { makeStatusPatch } from "./status-patch.ts";

const ready = (status: string, extra = {}) => ({ type: "Ready", status, lastTransitionTime: "t", ...extra });

t.test("makeStatusPatch() returns undefined when nothing differs", async (t) => {
  const status: PodStatus = { phase: "Running", conditions: [ready("True")], podIPs: [{ ip: "10.0.0.1" }] };
  t.equal(makeStatusPatch(status, { ...status }), undefined);
});

t.test("makeStatusPatch() keeps conditions and fields of other controllers", async (t) => {
  const before: PodStatus = {
    nominatedNodeName: "n",
    conditions: [ready("True"), { type: "example.org/x", status: "True" }],
  };
  t.equal(makeStatusPatch(before, { conditions: [ready("True")] }), undefined);
});

t.test("makeStatusPatch() removes a reason that no longer applies", async (t) => {
  const before: PodStatus = { conditions: [ready("False", { reason: "ContainersNotReady", message: "m" })] };
  t.same(makeStatusPatch(before, { conditions: [ready("True")] }), {
    conditions: [{ ...ready("True"), reason: null, message: null }],
  });
});

t.test("makeStatusPatch() removes absent fields, and replaces lists of addresses", async (t) => {
  const before: PodStatus = { reason: "x", podIPs: [{ ip: "10.0.0.1" }] };
  t.same(makeStatusPatch(before, { podIPs: [{ ip: "10.0.0.2" }] }), {
    reason: null,
    podIPs: [{ ip: "10.0.0.2" }, { $patch: "replace" }],
  });
  t.same(makeStatusPatch(undefined, { podIPs: [{ ip: "10.0.0.2" }] }), { podIPs: [{ ip: "10.0.0.2" }] });
});
