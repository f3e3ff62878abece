/** Commands of kubectl with workloads that run. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { request } from "node:http";
import { join } from "node:path";
import { kubectlPaths } from "../../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../../testing/std/until.ts";
import { exampleImage } from "../../cluster/example-image.ts";
import { type Behaviours, PAUSE, podOf, type TestNamespace, templateOf } from "../harness/behaviour.ts";
import { serverSpec } from "../harness/node-program.ts";

const labels = { app: "agnhost", role: "primary" };

function controllerOf(name: string, replicas: number, template: object = templateOf(labels, PAUSE)) {
  return {
    apiVersion: "v1",
    kind: "ReplicationController",
    metadata: { name, labels },
    spec: { replicas, selector: labels, template },
  };
}

async function waitRunning(at: TestNamespace, count: number): Promise<readonly string[]> {
  return await until(`${count} running pods`, async () => {
    const args = ["get", "pods", "-l", "app=agnhost", "--field-selector=status.phase=Running"];
    const template = "{{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}";
    const names = (await at.run([...args, "-o", `go-template=${template}`])).split(" ").filter((name) => name !== "");
    return names.length === count ? names : undefined;
  });
}

const apply = (at: TestNamespace, ...items: readonly object[]): Promise<string> =>
  at.run("apply -f -", JSON.stringify({ apiVersion: "v1", kind: "List", items }));

async function createAndStop(at: TestNamespace): Promise<void> {
  const controller = controllerOf("update-demo", 2);
  await at.run("create -f -", JSON.stringify(controller));
  const names = await waitRunning(at, 2);
  for (const name of names) {
    assert.equal(await at.run(["get", "pod", name, "-o", "jsonpath={.spec.containers[0].image}"]), exampleImage);
  }
  await at.run("delete --grace-period=0 --force -f -", JSON.stringify(controller));
  assert.equal(await at.run("get rc,svc -l app=agnhost --no-headers"), "");
  await waitRunning(at, 0);
}

async function scale(at: TestNamespace): Promise<void> {
  await at.run("create -f -", JSON.stringify(controllerOf("update-demo", 2)));
  await waitRunning(at, 2);
  await at.run("scale rc update-demo --replicas=1 --timeout=5m");
  await waitRunning(at, 1);
  await at.run("scale rc update-demo --replicas=2 --timeout=5m");
  await waitRunning(at, 2);
}

async function annotate(at: TestNamespace): Promise<void> {
  await apply(at, controllerOf("agnhost-primary", 2));
  const names = await waitRunning(at, 2);
  for (const name of names) await at.run(["patch", "pod", name, "-p", '{"metadata":{"annotations":{"x":"y"}}}']);
  for (const name of names) {
    assert.equal(await at.run(["get", "pod", name, "-o", "jsonpath={.metadata.annotations.x}"]), "y");
  }
}

async function describe(at: TestNamespace): Promise<void> {
  const ports = [{ port: 6379, targetPort: "agnhost-server" }];
  const spec = { ports, selector: labels };
  const service = { apiVersion: "v1", kind: "Service", metadata: { name: "agnhost-primary", labels }, spec };
  const container = { ports: [{ name: "agnhost-server", containerPort: 6379 }] };
  await apply(at, controllerOf("agnhost-primary", 1, templateOf(labels, PAUSE, { container })), service);
  const [pod = ""] = await waitRunning(at, 1);
  await at.waitReady(pod);
  const shows = async (what: string, ...patterns: readonly RegExp[]): Promise<void> => {
    // Events come after what they report.
    let output = "";
    const missing = (): readonly RegExp[] => patterns.filter((pattern) => !pattern.test(output));
    await until(
      () => `${missing()} in the description of ${what}:\n${output}`,
      async () => {
        output = await at.run(`describe ${what}`);
        return missing().length === 0;
      },
      { timeoutMs: 20_000 },
    );
  };
  const namespace = new RegExp(`^Namespace:\\s+${at.name}$`, "m");
  const labelled = [/^Labels:\s+app=agnhost$/m, /^\s+role=primary$/m];
  await shows(
    `pod ${pod}`,
    new RegExp(`^Name:\\s+${pod}$`, "m"),
    namespace,
    ...labelled,
    /^Annotations:\s+<none>$/m,
    /^Node:\s+e2e\//m,
    /^Status:\s+Running$/m,
    /^IP:\s+10\./m,
    /^Controlled By:\s+ReplicationController\/agnhost-primary$/m,
    new RegExp(`Image:\\s+${exampleImage}$`, "m"),
    /State:\s+Running$/m,
    /QoS Class:\s+BestEffort$/m,
    /Normal\s+Started\s.*Started container c$/m,
  );
  await shows(
    "rc agnhost-primary",
    /^Name:\s+agnhost-primary$/m,
    namespace,
    /^Selector:\s+app=agnhost,role=primary$/m,
    ...labelled,
    /^Replicas:\s+1 current \/ 1 desired$/m,
    /^Pods Status:\s+1 Running \/ 0 Waiting \/ 0 Succeeded \/ 0 Failed$/m,
    /Pod Template:/,
    /Events:[\s\S]*SuccessfulCreate/,
  );
  await until("the endpoints of the service", async () => {
    return /^Endpoints:\s+10\..*:6379$/m.test(await at.run("describe service agnhost-primary"));
  });
  await shows(
    "service agnhost-primary",
    /^Name:\s+agnhost-primary$/m,
    namespace,
    ...labelled,
    /^Selector:\s+app=agnhost,role=primary$/m,
    /^Type:\s+ClusterIP$/m,
    /^IP:\s+\d/m,
    /^Port:\s+<unset>\s+6379\/TCP$/m,
    /^Session Affinity:\s+None$/m,
  );
  await shows(
    "node e2e",
    /^Name:\s+e2e$/m,
    /^Labels:/m,
    /^CreationTimestamp:/m,
    /^Conditions:/m,
    /Ready\s+True/,
    /^Addresses:/m,
    /^Capacity:/m,
    /^Allocatable:/m,
    /^System Info:/m,
    new RegExp(`${at.name}\\s+${pod}`),
  );
  await shows(`namespace ${at.name}`, new RegExp(`^Name:\\s+${at.name}$`, "m"), /^Status:\s+Active$/m, /^Labels:/m);
}

async function diff(at: TestNamespace): Promise<void> {
  const deploymentOf = (image: string) => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "httpd-deployment" },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: "httpd" } },
      template: templateOf({ app: "httpd" }, PAUSE, { container: { image, imagePullPolicy: "IfNotPresent" } }),
    },
  });
  await at.run("create -f -", JSON.stringify(deploymentOf(exampleImage)));
  const { code, stdout } = await at.kubectl(["diff", "-f", "-"], JSON.stringify(deploymentOf("example.com/busybox:1")));
  assert.equal(code, 1);
  assert.match(stdout, new RegExp(`^- +image: ${exampleImage}$`, "m"));
  assert.match(stdout, /^\+ +image: example\.com\/busybox:1$/m);
}

async function expose(at: TestNamespace): Promise<void> {
  const template = {
    metadata: { labels },
    spec: serverSpec({ args: ["http=6379"], container: { readinessProbe: null } }),
  };
  await apply(at, controllerOf("agnhost-primary", 1, template));
  const [pod = ""] = await waitRunning(at, 1);
  const { status } = await at.waitReady(pod);
  const served = async (name: string, port: number): Promise<void> => {
    const { spec } = await at.api.get(at.path(`services/${name}`));
    assert.equal(spec.ports[0].port, port);
    assert.equal(spec.ports[0].targetPort, 6379);
    await until(`the endpoint of ${name}`, async () => {
      const { items } = await at.api.get(`${at.path("endpoints")}?fieldSelector=metadata.name%3D${name}`);
      const [subset] = items[0]?.subsets ?? [];
      return subset?.addresses?.[0]?.ip === status.podIP && subset.ports[0].port === 6379;
    });
    await until(`an answer of ${name}`, async () => {
      const response = await fetch(`http://${spec.clusterIP}:${port}/hostname`).catch(() => undefined);
      return (await response?.text()) === pod;
    });
  };
  await at.run("expose rc agnhost-primary --name=rm2 --port=1234 --target-port=6379");
  await served("rm2", 1234);
  await at.run("expose service rm2 --name=rm3 --port=2345 --target-port=6379");
  await served("rm3", 2345);
}

async function replaceImage(at: TestNamespace): Promise<void> {
  const pod = podOf("e2e-test-pod", PAUSE, { labels: { run: "e2e-test-pod" } });
  await at.runPod(pod);
  const found = await at.run("get pod e2e-test-pod -o json");
  const image = exampleImage.replace(":1", ":absent");
  await at.run("replace -f -", found.replaceAll(`"image": "${exampleImage}"`, `"image": "${image}"`));
  assert.equal(await at.run("get pod e2e-test-pod -o jsonpath={.spec.containers[0].image}"), image);
  const uid = await at.run("get pod e2e-test-pod -o jsonpath={.metadata.uid}");
  await at.run("replace --force -f -", JSON.stringify(pod));
  const { metadata, spec } = await at.waitReady("e2e-test-pod");
  assert.notEqual(metadata.uid, uid);
  assert.equal(spec.containers[0].image, exampleImage);
}

/** GET over a Unix socket. */
function read(socketPath: string, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, path, headers: { host: "localhost" } }, (response) => {
      let text = "";
      response.on("data", (chunk) => (text += chunk));
      response.on("end", () => resolve(text));
    });
    sent.on("error", reject).end();
  });
}

async function proxyAtSocket(at: TestNamespace): Promise<void> {
  const socket = join(at.cluster.dataDir, `${at.name}.sock`);
  const child = spawn(kubectlPaths()[0] ?? "kubectl", ["proxy", `--unix-socket=${socket}`], { env: at.cluster.env });
  try {
    const text = await until("an answer of the proxy", () => read(socket, "/api/").catch(() => undefined));
    const { kind, versions } = JSON.parse(text);
    assert.equal(kind, "APIVersions");
    assert.deepEqual(versions, ["v1"]);
  } finally {
    child.kill();
  }
}

/** A front end stores entries in the primary, which copies them to the replicas that the front end reads. */
async function runGuestbook(at: TestNamespace): Promise<void> {
  const part = (name: string, replicas: number) => {
    const labels = { app: "guestbook", tier: name };
    return [
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name },
        spec: {
          replicas,
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: serverSpec() },
        },
      },
      {
        apiVersion: "v1",
        kind: "Service",
        metadata: { name, labels },
        spec: { selector: labels, ports: [{ port: 6379, targetPort: 8080 }] },
      },
    ];
  };
  const items = [...part("primary", 1), ...part("replica", 2), ...part("frontend", 2)];
  await apply(at, ...items);
  for (const name of ["primary", "replica", "frontend"]) {
    await at.run(`rollout status deployment/${name} --timeout=120s`);
  }
  const replicas = await at.api.list(`${at.path("pods")}?labelSelector=tier%3Dreplica`);
  const copies = replicas.map(({ status }) => `${status.podIP}:8080`).join(",");
  const front = async (url: string): Promise<string> => {
    const path = at.path(`services/frontend:6379/proxy/fetch?url=${encodeURIComponent(url)}`);
    return (await at.api.send(`GET ${path}`)).text;
  };
  await until("a stored entry", async () => {
    return (await front(`http://primary:6379/set?key=messages&value=TestEntry&copies=${copies}`)) === "stored";
  });
  for (let count = 0; count < 4; count++) {
    assert.equal(await front("http://replica:6379/get?key=messages"), "TestEntry");
  }
  await at.run("delete -f -", JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  await until("the end of the pods", async () => {
    return (await at.api.list(`${at.path("pods")}?labelSelector=app%3Dguestbook`)).length === 0;
  });
}

export const kubectl: Behaviours = {
  "Kubectl client Guestbook application should create and stop a working application": runGuestbook,
  "Kubectl client Kubectl describe should check if kubectl describe prints relevant information for rc and pods":
    describe,
  "Kubectl client Kubectl diff should check if kubectl diff finds a difference for Deployments": diff,
  "Kubectl client Kubectl expose should create services for rc": expose,
  "Kubectl client Kubectl patch should add annotations for pods in rc": annotate,
  "Kubectl client Kubectl replace should update a single-container pod's image": replaceImage,
  "Kubectl client Proxy server should support --unix-socket=/path": proxyAtSocket,
  "Kubectl client Update Demo should create and stop a replication controller": createAndStop,
  "Kubectl client Update Demo should scale a replication controller": scale,
};
