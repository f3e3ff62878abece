import t from "tap";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { runtimeClassKind } from "../../../api/node/runtime-class/kind.ts";
import { readerOf, rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { runtimeClass } from "./runtime-class.ts";

const pod = (spec: Partial<PodSpec>): Pod => ({
  metadata: { name: "web", namespace: "default" },
  spec: { containers: [], ...spec },
});

t.test("runtimeClass() sets the overhead, node selector and tolerations of the runtime class", async (t) => {
  const heavy = { metadata: { name: "heavy" }, handler: "vm", overhead: { podFixed: { cpu: "1" } } };
  const placed = {
    metadata: { name: "placed" },
    handler: "vm",
    scheduling: { nodeSelector: { vm: "yes" }, tolerations: [{ key: "vm", operator: "Exists" as const }] },
  };
  const present = [heavy, placed].map((one) => [runtimeClassKind, one] as const);
  const plugin = runtimeClass({ reader: readerOf(present) });
  const spec = async (podSpec: Partial<PodSpec>) => (await runPlugin(plugin, podKind, pod(podSpec))).object.spec;
  t.same((await spec({ runtimeClassName: "heavy" }))?.overhead, { cpu: "1" });
  t.match(await spec({ runtimeClassName: "placed", nodeSelector: { a: "b" } }), {
    nodeSelector: { a: "b", vm: "yes" },
    tolerations: [{ key: "vm" }],
  });
  const why = async (podSpec: Partial<PodSpec>) => await rejectionOf(runPlugin(plugin, podKind, pod(podSpec)));
  t.match(await why({ runtimeClassName: "none" }), /pod rejected: RuntimeClass "none" not found/);
  t.match(await why({ overhead: { cpu: "1" } }), /without corresponding RuntimeClass defined Overhead/);
  t.match(await why({ runtimeClassName: "heavy", overhead: { cpu: "2" } }), /doesn't match RuntimeClass/);
  t.equal(await why({ runtimeClassName: "heavy", overhead: { cpu: "1000m" } }), "");
  t.match(await why({ runtimeClassName: "placed", nodeSelector: { vm: "no" } }), /conflict: runtimeClass.scheduling/);
});
