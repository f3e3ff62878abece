import t from "tap";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Toleration } from "../../../api/core/pod-spec/affinity.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { extendedResourceToleration } from "./extended-resource-toleration.ts";

const pod = (spec: Partial<PodSpec>, namespace = "default"): Pod => ({
  metadata: { name: "web", namespace },
  spec: { containers: [], ...spec },
});

t.test("extendedResourceToleration() adds a toleration for each extended resource that a pod requests", async (t) => {
  const containerRequesting = (...names: readonly string[]) => ({
    name: "a",
    resources: { requests: Object.fromEntries(names.map((name) => [name, "1"])) },
  });
  const tolerations = async (spec: Partial<PodSpec>) =>
    (await runPlugin(extendedResourceToleration(), podKind, pod(spec))).object.spec?.tolerations;
  const both = {
    containers: [containerRequesting("cpu", "b.com/gpu")],
    initContainers: [containerRequesting("a.com/nic", "b.com/gpu")],
  };
  const expected = [
    { key: "a.com/nic", operator: "Exists" },
    { key: "b.com/gpu", operator: "Exists" },
  ];
  t.same(await tolerations(both), expected);
  t.same(await tolerations({ ...both, tolerations: expected as readonly Toleration[] }), expected);
  t.equal(
    await tolerations({ containers: [containerRequesting("cpu", "hugepages-2Mi", "kubernetes.io/x")] }),
    undefined,
  );
});
