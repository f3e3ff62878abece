import t from "tap";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import { rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { alwaysPullImages } from "./always-pull-images.ts";

const pod = (spec: Partial<PodSpec>, namespace = "default"): Pod => ({
  metadata: { name: "web", namespace },
  spec: { containers: [], ...spec },
});

t.test(
  "alwaysPullImages() sets imagePullPolicy Always for all containers and image volumes of a new pod",
  async (t) => {
    const plugin = alwaysPullImages();
    const own = { name: "a", image: "i", imagePullPolicy: "Never" as const };
    const volumes = [
      { name: "v", image: { reference: "r" } },
      { name: "e", emptyDir: {} },
    ];
    const { object } = await runPlugin(plugin, podKind, pod({ containers: [own], initContainers: [own], volumes }));
    t.match(object.spec, {
      containers: [{ imagePullPolicy: "Always" }],
      initContainers: [{ imagePullPolicy: "Always" }],
      volumes: [{ image: { reference: "r", pullPolicy: "Always" } }, { name: "e", emptyDir: {} }],
    });
    const before = pod({ containers: [own] });
    t.equal((await runPlugin(plugin, podKind, before, { oldObject: before })).object, before, "no image is new");
    const changed = pod({ containers: [{ ...own, image: "j" }] });
    t.match((await runPlugin(plugin, podKind, changed, { oldObject: before })).object.spec?.containers, [
      { imagePullPolicy: "Always" },
    ]);
    const spoilt = { ...plugin, mutate: () => undefined };
    t.equal(
      await rejectionOf(runPlugin(spoilt, podKind, before)),
      'pods "web" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: "Never": supported values: "Always"',
    );
  },
);
