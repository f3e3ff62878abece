import t from "tap";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import type { ContainerConfig } from "../../runtime/cri/container.ts";

const volumes = [{ name: "model", image: { reference: "models/llm:2", pullPolicy: "Always" as const } }];
const containers = [
  {
    name: "c",
    image: "busybox:1",
    imagePullPolicy: "IfNotPresent" as const,
    volumeMounts: [{ name: "model", mountPath: "/model", subPath: "weights" }],
  },
];

t.test("pullImageVolumes() pulls the mounted images, and the runtime gets their mounts", async (t) => {
  await using harness = await podHarness();
  Object.assign(harness.services.settings, { imageVolumes: true });
  harness.fake.pullable.set("models/llm:2", { id: "sha256:llm" });
  harness.manager.put(testPod("web", { volumes, containers }));
  await harness.run(2);
  t.equal(harness.status("web")?.phase, "Running");
  const pulled = harness.fake.calls.filter(({ method }) => method === "pullImage");
  t.match(pulled, [{ request: { image: { image: /models\/llm:2$/ } } }]);
  const created = harness.fake.calls.find(({ method }) => method === "createContainer");
  const { config } = (created?.request ?? {}) as { readonly config?: ContainerConfig };
  t.match(
    config?.mounts?.find(({ containerPath }) => containerPath === "/model"),
    {
      readonly: true,
      imageSubPath: "weights",
      image: { image: "sha256:llm", userSpecifiedImage: "models/llm:2" },
    },
  );
});

t.test("findUnsupportedFeature() names an image volume if the feature is disabled", async (t) => {
  await using harness = await podHarness();
  harness.manager.put(testPod("web", { volumes, containers }));
  await harness.run(2);
  t.match(harness.status("web")?.containerStatuses?.[0]?.state?.waiting?.message, /volume "model" of type image/);
});
