/** Commands of kubectl: versions, labels, runs, dry runs, proxies and logs. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { kubectlPaths } from "../../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../../testing/std/until.ts";
import { exampleImage } from "../../cluster/example-image.ts";
import { type Behaviours, PAUSE, podOf, type TestNamespace } from "../harness/behaviour.ts";

async function listVersions(at: TestNamespace): Promise<void> {
  assert.ok((await at.run("api-versions")).split("\n").includes("v1"));
}

async function describeCluster(at: TestNamespace): Promise<void> {
  // Programs that write to a terminal colour the words.
  const output = await at.run("cluster-info");
  assert.match(output, /Kubernetes control plane\S* is running at \S*https:\/\//);
}

async function label(at: TestNamespace): Promise<void> {
  await at.runPod(podOf("pause", PAUSE));
  await at.run("label pods pause testing-label=testing-label-value");
  const column = async (): Promise<string | undefined> =>
    /^pause .*$/m.exec(await at.run("get pod pause -L testing-label"))?.[0];
  assert.match((await column()) ?? "", / testing-label-value *$/);
  assert.match(await at.run("get pods -l testing-label=testing-label-value -o name"), /^pod\/pause$/m);
  await at.run("label pods pause testing-label-");
  assert.doesNotMatch((await column()) ?? "", /testing-label-value/);
  assert.equal(await at.run("get pods -l testing-label -o name"), "");
}

async function run(at: TestNamespace): Promise<void> {
  await at.run(`run e2e-test-pod --restart=Never --image=${exampleImage} --image-pull-policy=IfNotPresent`);
  const { spec } = await at.pod("e2e-test-pod");
  assert.deepEqual(
    spec.containers.map(({ image }: { image: string }) => image),
    [exampleImage],
  );
  assert.equal(spec.restartPolicy, "Never");
}

async function dryRun(at: TestNamespace): Promise<void> {
  await at.run(`run e2e-test-pod --image=${exampleImage} --image-pull-policy=IfNotPresent -l run=e2e-test-pod`);
  const image = "example.com/busybox:1";
  const patch = JSON.stringify({ spec: { containers: [{ name: "e2e-test-pod", image }] } });
  const output = await at.run(["patch", "pod", "e2e-test-pod", "-p", patch, "--dry-run=server", "-o", "yaml"]);
  assert.match(output, /image: example\.com\/busybox:1/);
  assert.equal(await at.run("get pod e2e-test-pod -o jsonpath={.spec.containers[0].image}"), exampleImage);
}

async function printVersions(at: TestNamespace): Promise<void> {
  const { clientVersion, serverVersion } = JSON.parse(await at.run("version -o json"));
  for (const version of [clientVersion, serverVersion]) {
    assert.match(version.major, /^\d+$/);
    assert.match(version.minor, /^\d+\+?$/);
    for (const field of ["gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"]) {
      assert.equal(typeof version[field], "string", field);
    }
  }
  assert.deepEqual(serverVersion, await at.api.get("/version"));
}

async function proxyAtAnyPort(at: TestNamespace): Promise<void> {
  const words = ["proxy", "--port=0", "--disable-filter"];
  const child = spawn(kubectlPaths()[0] ?? "kubectl", words, { env: at.cluster.env });
  try {
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
    });
    const port = await until("the port of the proxy", () => /127\.0\.0\.1:(\d+)/.exec(output)?.[1]);
    const found = (await (await fetch(`http://127.0.0.1:${port}/api/`)).json()) as { readonly versions: string[] };
    assert.deepEqual(found.versions, ["v1"]);
  } finally {
    child.kill();
  }
}

async function filterLogs(at: TestNamespace): Promise<void> {
  const LINES = 20;
  const script = `for i in $(busybox seq ${LINES}); do echo line $i; sleep 0.1; done; sleep 3600`;
  await at.runPod(podOf("logs-generator", script));
  await at.waitForLog("logs-generator", /line 20\n/);
  const logs = (flags = ""): Promise<string> => at.run(`logs logs-generator c ${flags}`.trim());
  const all = await logs();
  assert.equal(all.trim().split("\n").length, LINES);
  assert.equal(await logs("--tail=1"), "line 20\n");
  assert.equal(await logs("--limit-bytes=1"), "l");
  assert.match(await logs("--tail=1 --timestamps"), /^\d{4}-\d\d-\d\dT\S+Z line 20\n$/);
  await new Promise((resolve) => setTimeout(resolve, 2500));
  assert.equal(await logs("--since=1s"), "");
  assert.equal((await logs("--since=24h")).trim().split("\n").length, LINES);
}

export const commands: Behaviours = {
  "Kubectl client Kubectl api-versions should check if v1 is in available api versions": listVersions,
  "Kubectl client Kubectl cluster-info should check if Kubernetes control plane services is included in cluster-info":
    describeCluster,
  "Kubectl client Kubectl label should update the label on a resource": label,
  "Kubectl client Kubectl run pod should create a pod from an image when restart is Never": run,
  "Kubectl client Kubectl server-side dry-run should check if kubectl can dry-run update Pods": dryRun,
  "Kubectl client Kubectl version should check is all data is printed": printVersions,
  "Kubectl client Proxy server should support proxy with --port 0": proxyAtAnyPort,
  "Kubectl logs logs should be able to retrieve and filter logs": filterLogs,
};
