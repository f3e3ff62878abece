import t from "tap";
import type { VolumeMount } from "../../../api/core/container/schema.ts";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import type { PodContext } from "../pod-context.ts";
import { resolveRecursiveReadOnly } from "./recursive-read-only.ts";

t.test("resolveRecursiveReadOnly() reads the features of the handler of the pod's RuntimeClass", async (t) => {
  await using harness = await podHarness();
  const features = { recursiveReadOnlyMounts: true };
  const runtime = {
    ...harness.services.runtime,
    status: async () => ({
      runtimeHandlers: [
        { name: "", features: {} },
        { name: "runsc", features },
      ],
    }),
  };
  const context = (runtimeClassName: string): PodContext =>
    ({
      pod: testPod("web", runtimeClassName === "" ? {} : { runtimeClassName }),
      services: {
        ...harness.services,
        runtime,
        getRuntimeHandler: async ({ spec }) => (spec?.runtimeClassName === "sandboxed" ? "runsc" : ""),
      },
      signal: new AbortController().signal,
    }) as Partial<PodContext> as PodContext;
  const mount: VolumeMount = { name: "v", mountPath: "/v", readOnly: true, recursiveReadOnly: "Enabled" };
  t.equal(await resolveRecursiveReadOnly(context("sandboxed"), mount), true);
  await t.rejects(resolveRecursiveReadOnly(context(""), mount), /it is not supported by the runtime/);
  t.equal(await resolveRecursiveReadOnly(context(""), { ...mount, recursiveReadOnly: "IfPossible" }), false);
});
