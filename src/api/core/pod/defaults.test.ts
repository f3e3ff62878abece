import t from "tap";
import { pullPolicyOf } from "../pod-spec/defaults.ts";
import { setPodDefaults } from "./defaults.ts";
import type { Pod } from "./schema.ts";

function defaulted(spec: Partial<NonNullable<Pod["spec"]>>): NonNullable<Pod["spec"]> {
  const { spec: result } = setPodDefaults({ spec: { containers: [], ...spec } });
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

t.test("pullPolicyOf() distinguishes the tag from the port of the registry", async (t) => {
  t.equal(pullPolicyOf("web"), "Always");
  t.equal(pullPolicyOf("web:latest"), "Always");
  t.equal(pullPolicyOf("registry:5000/web"), "Always");
  t.equal(pullPolicyOf("registry:5000/web:1"), "IfNotPresent");
  t.equal(pullPolicyOf(`web@sha256:${"0".repeat(64)}`), "IfNotPresent");
});
