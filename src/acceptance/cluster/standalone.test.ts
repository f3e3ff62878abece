/** The standalone agent with containerd, and kubectl that reads its pods. */
import { mkdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import t from "tap";
import { type PrivateContainerd, startPrivateContainerd } from "../../testing/agent/private-containerd.ts";
import { kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../testing/std/until.ts";
import { AgentProcess } from "./agent-process.ts";
import { type CommandResult, command, findMissingRequirement } from "./cluster.ts";

const missing = findMissingRequirement();
const forever = "trap 'exit 0' TERM; while :; do sleep 0.1; done";

function pod(name: string, script: string, spec: object = {}, container: object = {}): object {
  const one = { name: "c", image: "localhost/bb:1", imagePullPolicy: "Never", command: ["sh", "-c", script] };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: { dnsPolicy: "Default", terminationGracePeriodSeconds: 1, ...spec, containers: [{ ...one, ...container }] },
  };
}

const web = pod(
  "web",
  `echo "$WORD $(cat /keys/password)"; ${forever}`,
  { volumes: [{ name: "keys", secret: { secretName: "keys" } }] },
  {
    env: [{ name: "WORD", valueFrom: { configMapKeyRef: { name: "words", key: "word" } } }],
    volumeMounts: [{ name: "keys", mountPath: "/keys" }],
  },
);
const words = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "words" }, data: { word: "open" } };
const keys = { apiVersion: "v1", kind: "Secret", metadata: { name: "keys" }, stringData: { password: "sesame" } };
const bad = "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec:\n  containers:\n  - {name: c, imag: x}\n";

function put(node: AgentProcess, name: string, ...objects: readonly (object | string)[]): void {
  const text = objects.map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join("\n---\n");
  writeFileSync(join(node.manifests, `.${name}`), text);
  renameSync(join(node.manifests, `.${name}`), join(node.manifests, name));
}

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  await using containerd: PrivateContainerd = await startPrivateContainerd();
  const home = join(containerd.directory, "home");
  mkdirSync(home);
  const found = kubectlPaths();
  const [oldest = "", newest = oldest] = [found[0], found.at(-1)];
  const kubectl = (node: AgentProcess, args: readonly string[], binary = oldest): Promise<CommandResult> =>
    command(binary, args, { env: { ...process.env, KUBECONFIG: node.standaloneConfig, HOME: home } });
  const runKubectl = async (node: AgentProcess, ...args: readonly string[]): Promise<string> =>
    (await kubectl(node, args)).stdout;
  const runs = (node: AgentProcess, name: string): Promise<true> =>
    until(`${name} to run`, async () =>
      / Running /.test(await runKubectl(node, "get", "pod", name)) ? true : undefined,
    );

  await t.test("the standalone agent runs the manifests of its directory, and kubectl reads them", async (t) => {
    await using node = await AgentProcess.create({ containerd, name: "alone" });
    put(node, "web.yaml", web, words, keys);
    put(node, "bad.yaml", bad);
    node.start("standalone");
    await until("the kubeconfig", async () =>
      statSync(node.standaloneConfig, { throwIfNoEntry: false }) ? true : undefined,
    );
    t.equal(statSync(node.standaloneConfig).mode & 0o777, 0o600);
    t.match(node.log, node.standaloneConfig, "the log has its path");
    await runs(node, "web-n1");
    // The agent updates the node's conditions every ten seconds.
    const complaint = "jsonpath={.status.conditions[?(@.type=='ManifestProblem')].message}";
    await until("the condition of the node", async () =>
      /bad\.yaml:6: /.test(await runKubectl(node, "get", "node", "n1", "-o", complaint)) ? true : undefined,
    );

    for (const binary of new Set([oldest, newest])) {
      const cases: readonly (readonly [string, RegExp])[] = [
        ["get pods -A -o wide", /default +web-n1 +1\/1 +Running +0 .* 10\.\S+ +n1 /],
        ["get pods -A -o yaml", /phase: Running/],
        ["get pods -l app=none", /^$/],
        ["get pods --field-selector=spec.nodeName=n1 -o name", /^pod\/web-n1\n$/],
        ["describe pod web-n1", /Normal +Started .*svclet +Started container c/],
        ["logs web-n1", /^open sesame\n$/],
        ["logs web-n1 --tail=1 --timestamps", /^2\S+Z open sesame\n$/],
        ["events", /Started +Pod\/web-n1/],
        ["get events", /pod\/web-n1/],
        ["get nodes", /^n1 +Ready /m],
        ["describe node n1", /HolderIdentity: +n1/],
        ["get configmap words -o jsonpath={.data.word}", /^open$/],
        ["get secrets", /keys +Opaque +1 /],
        ["get namespaces -o name", /namespace\/default/],
        ["api-resources --verbs=list -o name", /^pods$/m],
        ["api-resources --verbs=create -o name", /^$/],
        ["explain pod.spec.containers", /FIELD: containers/],
        ["get --raw /readyz", /^ok$/],
      ];
      for (const [line, expected] of cases) {
        const { stdout, stderr } = await kubectl(node, line.split(" "), binary);
        t.match(stdout, expected, `${line}: ${stderr}`);
      }
      for (const line of ["delete pod web-n1", "run x --image=y", "exec web-n1 -- ls", "label pod web-n1 a=b"]) {
        const { code, stderr } = await kubectl(node, line.split(" "), binary);
        t.equal(code, 1, line);
        t.match(stderr, `serves read requests only: change the manifests at ${node.manifests} instead`, line);
      }
    }
    t.notMatch(
      await runKubectl(node, "get", "secret", "keys", "-o", "yaml"),
      /sesame|c2VzYW1l/,
      "the value is not served",
    );
    t.match(await runKubectl(node, "logs", "web-n1", "-c", "none"), "");
    const unauthenticated = await kubectl(node, ["get", "pods", "--token=guessed"]);
    t.match(unauthenticated.stderr, /Unauthorized|must be logged in/);

    const watched = kubectl(node, ["get", "pods", "--watch", "--request-timeout=10s"]);
    put(node, "late.yaml", pod("late", "echo done", { restartPolicy: "Never" }));
    t.match((await watched).stdout, /late-n1 [\s\S]*late-n1 .* Completed/);
    const lines = node.log.split("\n").filter((line) => line.includes("bad.yaml:6"));
    t.equal(new Set(lines).size, lines.length, "each problem is logged once");
    const events = (await runKubectl(node, "get", "events", "--field-selector=reason=FailedValidation"))
      .trim()
      .split("\n");
    t.equal(events.length - 1, lines.length, "an event for each problem");
    t.match(lines.join("\n"), /spec\.containers\[0\]\.imag: unknown field/);

    rmSync(join(node.manifests, "bad.yaml"));
    rmSync(join(node.manifests, "late.yaml"));
    await until("removal of the late pod", async () =>
      /late/.test(await runKubectl(node, "get", "pods")) ? undefined : true,
    );
    await until("the condition to be cleared", async () =>
      /ManifestProblem +False/.test(await runKubectl(node, "describe", "node", "n1")) ? true : undefined,
    );
    const before = await runKubectl(
      node,
      "get",
      "pod",
      "web-n1",
      "-o",
      "jsonpath={.status.containerStatuses[0].containerID}",
    );
    t.equal(await node.stop(), 0);
    node.start("standalone");
    await runs(node, "web-n1");
    const after = await runKubectl(
      node,
      "get",
      "pod",
      "web-n1",
      "-o",
      "jsonpath={.status.containerStatuses[0].containerID}",
    );
    t.equal(after, before, "the next agent adopts the pod, and the kubeconfig stays valid");
    rmSync(join(node.manifests, "web.yaml"));
    await until(
      () => `removal of the pod; the agent's log ends with\n${node.log.split("\n").slice(-30).join("\n")}`,
      async () => (/web/.test(await runKubectl(node, "get", "pods")) ? undefined : true),
      { timeoutMs: 150_000 },
    );
  });

  await t.test("the standalone agent runs pods of a URL, and serves no reads with --enable-server=false", async (t) => {
    await using node = await AgentProcess.create({ containerd, name: "url" });
    let text = JSON.stringify(pod("far", forever));
    const server = createServer((_request, response) => void response.end(text)).listen(0, "127.0.0.1");
    try {
      await new Promise((resolve) => server.once("listening", resolve));
      const url = `http://user:pass@127.0.0.1:${(server.address() as { readonly port: number }).port}/pods`;
      node.start("standalone", `--manifest-url=${url}`, "--http-check-frequency=1s");
      await until("the kubeconfig", async () =>
        statSync(node.standaloneConfig, { throwIfNoEntry: false }) ? true : undefined,
      );
      await runs(node, "far-n1");
      const { stderr } = await kubectl(node, ["delete", "pod", "far-n1"]);
      t.match(stderr, "change the manifests at");
      t.notMatch(stderr, "pass@");
      text = JSON.stringify({ apiVersion: "v1", kind: "PodList", items: [] });
      await until("removal of the pod", async () =>
        /far/.test(await runKubectl(node, "get", "pods")) ? undefined : true,
      );
      await node.stop();
      rmSync(node.standaloneConfig);
      node.start("standalone", "--enable-server=false");
      await until("the agent to start", async () =>
        /Starting|maintenance/.test(node.log.split("Stopping")[1] ?? "") ? true : undefined,
      );
      await node.stop();
      t.equal(statSync(node.standaloneConfig, { throwIfNoEntry: false }), undefined);
    } finally {
      server.close();
    }
  });

  await t.test("svc agent --runonce runs the pods of its manifests, and reports those that fail", async (t) => {
    await using node = await AgentProcess.create({ containerd, name: "once" });
    put(
      node,
      "once.yaml",
      pod(
        "once",
        "cat /keys/password",
        {
          restartPolicy: "Never",
          volumes: [{ name: "keys", secret: { secretName: "keys" } }],
        },
        { volumeMounts: [{ name: "keys", mountPath: "/keys" }] },
      ),
      keys,
    );
    node.start("standalone", "--runonce", "--enable-server=false");
    t.equal(await node.ended(), 0);
    put(node, "bad.yaml", bad);
    node.start("standalone", "--runonce", "--enable-server=false");
    t.equal(await node.ended(), 1);
    t.match(node.log, /Cannot run all pods: .*bad\.yaml:6: spec\.containers\[0\]\.image: Required value/);
  });
}
