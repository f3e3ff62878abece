/** kubectl debug with an ephemeral container, a copy of a pod and a node; kubectl proxy; with svc up and containerd. */
import { request } from "node:http";
import { connect } from "node:net";
import t, { type Test } from "tap";
import { kubectlPaths } from "../../testing/apiserver/kubectl-paths.ts";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement, programs, TestCluster } from "./cluster.ts";
import { exampleImage } from "./example-image.ts";
import { endsOf, KubectlSession, type KubectlVersion } from "./kubectl-sessions.ts";

const RUN_MS_MAX = 300_000;
/** Before, kubectl writes the subresource of ephemeral containers in a version that is not served any more. */
const EPHEMERAL_MINOR = 22;

t.setTimeout(RUN_MS_MAX);
const missing = findMissingRequirement();
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("kubectl debugs pods and nodes, and serves as a proxy", { timeout: RUN_MS_MAX }, async (t) => {
    await using cluster = await TestCluster.create({ program: programs.bundle });
    await cluster.start("--stop-pods");
    for (const [index, version] of (await endsOf(kubectlPaths())).entries()) {
      const session = { cluster, ...version, pod: `web-${index}` };
      await createPod(session);
      await t.test(`ephemeral container, ${version.path}`, (t) => testEphemeral(t, session));
      await t.test(`copy, ${version.path}`, (t) => testCopy(t, session));
      await t.test(`node, ${version.path}`, (t) => testNode(t, session));
      await t.test(`proxy, ${version.path}`, (t) => testProxy(t, session));
    }
  });
}

interface Session extends KubectlVersion {
  readonly cluster: TestCluster;
  readonly pod: string;
}

const image = [`--image=${exampleImage}`];

async function createPod({ cluster, pod }: Session): Promise<void> {
  const container = { name: "c", image: exampleImage, command: ["sh", "-c", "echo started; sleep 3600 & wait"] };
  const spec = { terminationGracePeriodSeconds: 0, containers: [container] };
  const object = { apiVersion: "v1", kind: "Pod", metadata: { name: pod, labels: { app: pod } }, spec };
  await cluster.kubectl(["create", "-f", "-"], { input: JSON.stringify(object) });
  await until("the pod to run", async () => (await read(cluster, pod, "{.status.phase}")) === "Running");
}

async function read(cluster: TestCluster, pod: string, path: string): Promise<string> {
  return (await cluster.kubectl(["get", "pod", pod, "-o", `jsonpath=${path}`])).stdout;
}

/**
 * Attaches to the new container, runs the lines in its shell and ends it; resolves with the output. The input stays
 * open until the lines have run: kubectl debug does not set `stdinOnce`, so that the output ends with the input.
 */
async function debug(t: Test, { cluster, path }: Session, args: readonly string[], lines: readonly string[]) {
  const session = new KubectlSession(path, ["debug", ...args, "-i", ...image, "--", "sh"], cluster.env);
  session.write([...lines, "echo finished-$((1+1))", ""].join("\n"));
  await until("the commands", () => session.output.includes("finished-2")).catch((cause: unknown) => {
    throw new Error(`kubectl debug ${args.join(" ")} printed ${session.output}${session.errors}`, { cause });
  });
  session.write("exit 0\n");
  t.match(await session.end(), { code: 0 }, "kubectl ends with the shell");
  return session.output + session.errors;
}

async function testEphemeral(t: Test, session: Session): Promise<void> {
  const { cluster, pod, minor, path } = session;
  const args = [pod, "-c", "dbg", "--target=c"];
  if (minor < EPHEMERAL_MINOR) {
    const refused = await cluster.kubectl(["debug", ...args, ...image], { binary: path });
    t.match(refused, { code: 1, stderr: /EphemeralContainers in version "v1" cannot be handled as a Pod/ });
    return;
  }
  const output = await debug(t, session, args, ["echo seen-$((40+2))", "ps -o args"]);
  t.match(output, "seen-42\n", "input and output of the attached shell");
  t.match(output, /^sleep 3600$/m, "processes of the target");
  t.equal(await read(cluster, pod, "{.spec.ephemeralContainers[0].targetContainerName}"), "c");
  const state = "{.status.ephemeralContainerStatuses[0].state.terminated.exitCode}";
  await until("the state of the container", async () => (await read(cluster, pod, state)) === "0");
  t.match((await cluster.kubectl(["logs", pod, "-c", "dbg"])).stdout, "seen-42\n");
  const described = (await cluster.kubectl(["describe", "pod", pod])).stdout;
  t.match(described, /^Ephemeral Containers:\n {2}dbg:\n/m);
}

async function testCopy(t: Test, session: Session): Promise<void> {
  const { cluster, pod, path } = session;
  const copy = `${pod}-copy`;
  const args = [pod, `--copy-to=${copy}`, "-c", "dbg", "--share-processes"];
  const output = await debug(t, session, args, ["echo seen-$((40+2))", "ps -o args"]);
  t.match(output, "seen-42\n");
  t.match(output, /^sleep 3600$/m, "processes of the copied container");
  t.match((await cluster.kubectl(["logs", copy, "-c", "c"], { binary: path })).stdout, "started\n");
  t.equal(await read(cluster, copy, "{.spec.shareProcessNamespace} {.metadata.labels}"), "true ", "without labels");
  t.equal(await read(cluster, pod, "{.status.phase}"), "Running", "the pod is left alone");

  const changed = `${pod}-changed`;
  const set = ["debug", pod, `--copy-to=${changed}`, "-c", "c", "--", "sh", "-c", "echo changed; sleep 3600"];
  const second = await cluster.kubectl(set, { binary: path });
  t.equal(second.code, 0, second.stderr);
  await until("the changed command", async () => (await cluster.kubectl(["logs", changed])).stdout === "changed\n");
  await cluster.kubectl(["delete", "pod", copy, changed, "--force", "--grace-period=0"]);
}

async function testNode(t: Test, session: Session): Promise<void> {
  const { cluster } = session;
  const lines = ["echo seen-$((40+2))", "ls /host/proc/1 | busybox grep -x status", "ps -o args"];
  const output = await debug(t, session, ["node/e2e"], lines);
  t.match(output, "seen-42\nstatus\n", "the node's files");
  t.match(output, /svc up --data-dir=/, "the node's processes");
  const [, name = ""] = /Creating debugging pod (\S+) with container debugger on node e2e/.exec(output) ?? [];
  t.match(name, /^node-debugger-e2e-/);
  const fields = "{.spec.nodeName} {.spec.hostPID} {.spec.hostNetwork}";
  t.equal(await read(cluster, name, fields), "e2e true true");
  await cluster.kubectl(["delete", "pod", name, "--force", "--grace-period=0"]);
}

async function testProxy(t: Test, { cluster, path, pod }: Session): Promise<void> {
  const session = new KubectlSession(path, ["proxy", "--port=0"], cluster.env);
  const port = await until("the proxy", () => Number(/127\.0\.0\.1:(\d+)/.exec(session.output)?.[1]) || undefined);
  const get = (target: string) => fetch(`http://127.0.0.1:${port}${target}`);
  t.match(await (await get("/version")).json(), { major: "1", minor: "33" });
  const pods = (await (await get("/api/v1/namespaces/default/pods?limit=1")).json()) as { readonly kind: string };
  t.equal(pods.kind, "PodList");
  t.equal(await (await get("/api/v1/nodes/e2e/proxy/healthz")).text(), "ok");
  t.match(await (await get(`/api/v1/namespaces/default/pods/${pod}/log`)).text(), "started\n");
  t.equal((await get("/api/v1/namespaces/default/pods/absent")).status, 404);
  t.equal((await get(`/api/v1/namespaces/default/pods/${pod}/exec?command=id`)).status, 403, "kubectl refuses exec");
  t.match(await firstEvent(port, "/api/v1/namespaces/default/pods?watch=1"), /^\{"type":"ADDED"/);
  const created = await fetch(`http://127.0.0.1:${port}/api/v1/namespaces/default/configmaps`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: `from-${pod}` } }),
  });
  t.equal(created.status, 201);
  t.equal((await cluster.kubectl(["get", "configmap", `from-${pod}`])).code, 0);
  await session.kill();

  const open = new KubectlSession(path, ["proxy", "--port=0", "--reject-paths=^$"], cluster.env);
  const free = await until("the proxy", () => Number(/127\.0\.0\.1:(\d+)/.exec(open.output)?.[1]) || undefined);
  const target = `/api/v1/namespaces/default/pods/${pod}/exec?command=echo&command=through&stdout=true`;
  t.match(await upgrade(free, target), /^HTTP\/1\.1 101 [\s\S]*through\n/, "a WebSocket through the proxy");
  await open.kill();
}

function firstEvent(port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path }, (response) => {
      response.once("data", (chunk: Buffer) => {
        resolve(String(chunk));
        sent.destroy();
      });
    });
    sent.on("error", reject);
    sent.end();
  });
}

/** What the server sends to a client of WebSockets until it closes the connection. */
function upgrade(port: number, path: string): Promise<string> {
  const headers = [
    `GET ${path} HTTP/1.1`,
    "Host: localhost",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Protocol: v4.channel.k8s.io",
  ];
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(`${headers.join("\r\n")}\r\n\r\n`));
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (text.includes("through\n")) socket.destroy();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(text));
  });
}
