import t from "tap";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { defaultTolerationSeconds } from "./default-toleration-seconds.ts";

const pod = (spec: Partial<PodSpec>): Pod => ({
  metadata: { name: "web", namespace: "default" },
  spec: { containers: [], ...spec },
});

t.test(
  "defaultTolerationSeconds() adds the not-ready and unreachable tolerations that a pod does not have",
  async (t) => {
    const plugin = defaultTolerationSeconds({ tolerationSeconds: { notReady: 300, unreachable: 60 } });
    const { object } = await runPlugin(plugin, podKind, pod({}));
    t.match(object.spec?.tolerations, [
      { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 },
      { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute", tolerationSeconds: 60 },
    ]);
    t.equal((await runPlugin(plugin, podKind, pod({}), { oldObject: object })).object.spec?.tolerations?.length, 2);
    const all = pod({ tolerations: [{ operator: "Exists" }] });
    t.equal((await runPlugin(plugin, podKind, all)).object, all);
    const status = pod({});
    t.equal((await runPlugin(plugin, podKind, status, { oldObject: status, subresource: "status" })).object, status);
  },
);
