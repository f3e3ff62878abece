import t from "tap";
import { setPodTemplateDefaults } from "../../api/core/pod-template/defaults.ts";
import { podTemplateSpec } from "../../api/core/pod-template/schema.ts";
import { applyDefaults } from "../../schema/defaults.ts";
import { computeHash, printPodTemplate } from "./pod-template-hash.ts";

const template = (image: string) =>
  setPodTemplateDefaults(
    applyDefaults(podTemplateSpec, {
      metadata: { labels: { app: "web" } },
      spec: { containers: [{ name: "c", image }] },
    }),
  );

t.test("computeHash() returns the hashes that Kubernetes 1.33 gave these templates", async (t) => {
  t.equal(computeHash(template("img:1"), undefined), "7dbc55687d");
  t.equal(computeHash(template("img:2"), undefined), "5dd79ff445");
  t.not(computeHash(template("img:1"), 0), computeHash(template("img:1"), undefined));
  t.not(computeHash(template("img:1"), 0), computeHash(template("img:1"), 1));
});

t.test("printPodTemplate() prints quantities, ports and embedded structs as Go values", async (t) => {
  const printed = printPodTemplate({
    spec: {
      containers: [
        {
          name: "c",
          resources: { requests: { cpu: "500m", memory: "64Mi" } },
          readinessProbe: { httpGet: { port: "http" } },
        },
      ],
      volumes: [{ name: "v", emptyDir: {} }],
    },
  });
  t.match(printed, /cpu:\{i:\(resource\.int64Amount\)\{value:\(int64\)500 scale:\(resource\.Scale\)-3\}/);
  t.match(printed, /memory:\{i:\(resource\.int64Amount\)\{value:\(int64\)67108864 scale:\(resource\.Scale\)0\}/);
  t.match(printed, /Port:\(intstr\.IntOrString\)\{Type:\(intstr\.Type\)1 IntVal:\(int32\)0 StrVal:\(string\)http\}/);
  t.match(printed, /VolumeSource:\(v1\.VolumeSource\)\{.*EmptyDir:\(\*v1\.EmptyDirVolumeSource\)\{/);
});
