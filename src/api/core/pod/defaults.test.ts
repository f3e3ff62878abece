import t from "tap";
import type { FeatureLookup } from "../../../flags/gates.ts";
import { pullPolicyOf } from "../pod-spec/defaults.ts";
import { setPodDefaults } from "./defaults.ts";
import type { Pod } from "./schema.ts";

const withPodLevel: FeatureLookup = { has: (name: string) => name === "PodLevelResources" };

function defaulted(spec: Partial<NonNullable<Pod["spec"]>>, features = withPodLevel): NonNullable<Pod["spec"]> {
  const { spec: result } = setPodDefaults({ spec: { containers: [], ...spec } }, features);
  if (result === undefined) throw new Error("no spec");
  return result;
}

t.test("setPodDefaults() sets Kubernetes' defaults", async (t) => {
  t.same(defaulted({ containers: [{ name: "a", image: "web:1" }] }), {
    containers: [
      {
        name: "a",
        image: "web:1",
        imagePullPolicy: "IfNotPresent",
        terminationMessagePath: "/dev/termination-log",
        terminationMessagePolicy: "File",
      },
    ],
    restartPolicy: "Always",
    dnsPolicy: "ClusterFirst",
    securityContext: {},
    terminationGracePeriodSeconds: 30,
    schedulerName: "default-scheduler",
    enableServiceLinks: true,
  });
});

t.test("setPodDefaults() keeps values that are set", async (t) => {
  const spec = defaulted({
    containers: [{ name: "a", image: "web", imagePullPolicy: "Never" }],
    restartPolicy: "Never",
    terminationGracePeriodSeconds: 0,
    enableServiceLinks: false,
  });
  t.equal(spec.restartPolicy, "Never");
  t.equal(spec.terminationGracePeriodSeconds, 0);
  t.equal(spec.enableServiceLinks, false);
  t.equal(spec.containers[0]?.imagePullPolicy, "Never");
});

t.test("setPodDefaults() sets requests from limits and host ports from container ports", async (t) => {
  const spec = defaulted({
    hostNetwork: true,
    containers: [
      {
        name: "a",
        image: "web",
        ports: [{ containerPort: 80 }],
        resources: { limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "500m" } },
      },
    ],
  });
  t.same(spec.containers[0]?.resources?.requests, { cpu: "500m", memory: "1Gi" });
  t.equal(spec.containers[0]?.ports?.[0]?.hostPort, 80);
});

t.test("setPodDefaults() sets requests of a pod with limits from its containers, or from the limits", async (t) => {
  const containers = ["a", "b"].map((name) => ({ name, image: "web", resources: { requests: { cpu: "250m" } } }));
  const requestsOf = (resources: object) => defaulted({ containers, resources }).resources?.requests;
  t.same(requestsOf({ limits: { cpu: "2", memory: "1Gi" } }), { cpu: "500m", memory: "1Gi" });
  t.same(requestsOf({ limits: { cpu: "2", memory: "1Gi" }, requests: { cpu: "1" } }), { cpu: "1", memory: "1Gi" });
  t.same(requestsOf({ requests: { memory: "1Gi" } }), { memory: "1Gi" }, "without limits they stay as they are");
  const limits = { cpu: "2" };
  t.same(
    defaulted({ containers, resources: { limits } }, { has: () => false }).resources,
    { limits },
    "without the gate",
  );
});

t.test("setPodDefaults() sets huge page limits of a pod with resources from its containers", async (t) => {
  const resources = { limits: { "hugepages-2Mi": "4Mi", memory: "1Gi" } };
  const containers = ["a", "b"].map((name) => ({ name, image: "web", resources }));
  const of = (podLevel: object | undefined) => defaulted({ containers, ...(podLevel && { resources: podLevel }) });
  t.equal(of(undefined).resources, undefined);
  t.same(of({}).resources, {});
  t.same(of({ requests: { cpu: "1" } }).resources, {
    limits: { "hugepages-2Mi": "8Mi" },
    requests: { cpu: "1", memory: "2Gi", "hugepages-2Mi": "8Mi" },
  });
  t.same(of({ limits: { "hugepages-2Mi": "16Mi" } }).resources, {
    limits: { "hugepages-2Mi": "16Mi" },
    requests: { memory: "2Gi", "hugepages-2Mi": "16Mi" },
  });
});

t.test("setPodDefaults() sets the defaults of probes, volumes and references", async (t) => {
  const spec = defaulted({
    containers: [
      {
        name: "a",
        image: "web",
        livenessProbe: { httpGet: { port: 80 } },
        env: [{ name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }],
      },
    ],
    volumes: [
      { name: "empty" },
      { name: "config", configMap: { name: "c" } },
      { name: "mix", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } },
    ],
  });
  t.same(spec.containers[0]?.livenessProbe, {
    httpGet: { port: 80, path: "/", scheme: "HTTP" },
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  });
  t.equal(spec.containers[0]?.env?.[0]?.valueFrom?.fieldRef?.apiVersion, "v1");
  t.same(spec.volumes, [
    { name: "empty", emptyDir: {} },
    { name: "config", configMap: { name: "c", defaultMode: 420 } },
    {
      name: "mix",
      projected: { defaultMode: 420, sources: [{ serviceAccountToken: { path: "t", expirationSeconds: 3600 } }] },
    },
  ]);
});

t.test("images with the tag latest, and those without tag and digest, are always pulled", async (t) => {
  const digest = `@sha256:${"0".repeat(64)}`;
  for (const image of ["web", "web:latest", "registry:5000/web", "Registry/web", `web:latest${digest}`]) {
    t.equal(pullPolicyOf(image), "Always", image);
  }
  const invalid = ["", "Web", "0".repeat(64), "a..b/c/:latest", "web:latest@sha256:0000", `${"a".repeat(256)}:latest`];
  for (const image of ["web:1", "registry:5000/web:1", `web${digest}`, `web:1${digest}`, ...invalid]) {
    t.equal(pullPolicyOf(image), "IfNotPresent", image);
  }
});
