/** DNS in pods, traffic between pods and from the node, and the proxies of the API server. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { until } from "../../../testing/std/until.ts";
import type { Json } from "../harness/api.ts";
import { type Behaviour, type Behaviours, PAUSE, podOf, type TestNamespace } from "../harness/behaviour.ts";
import { serverPod } from "../harness/node-program.ts";
import { serviceOf } from "./services.ts";

/** Queries the name with the search domains of the pod, then as it is, as resolvers do. */
const lookUp = (at: TestNamespace, name: string, type = "a"): Promise<string> =>
  at.exec(
    "client",
    `for domain in $(busybox sed -n 's/^search //p' /etc/resolv.conf | busybox sed 's/[^ ]*/.&/g') ""; do
      busybox nslookup -type=${type} ${name}$domain 2>&1 | busybox grep -A9 '^Name:\\|canonical name\\|service =' && break
    done || true`,
  );

/** Resolves with the answer when it has the address. */
export async function expectAnswer(at: TestNamespace, name: string, pattern: RegExp, type = "a"): Promise<void> {
  let last = "";
  await until(
    () => `${pattern} in the answer for ${name}: ${last}`,
    async () => {
      last = await lookUp(at, name, type);
      return pattern.test(last);
    },
  );
}

export const literally = (text: string): string => text.replaceAll(".", "\\.");

async function resolveCluster(at: TestNamespace): Promise<void> {
  await at.runPod(podOf("client", PAUSE));
  const { spec } = await at.api.get("/api/v1/namespaces/default/services/kubernetes");
  const address = new RegExp(`Address: ${literally(spec.clusterIP)}$`, "m");
  await expectAnswer(at, "kubernetes.default.svc.cluster.local", address);
  await expectAnswer(at, "kubernetes.default", address);
  const { clusterIP } = (await at.api.get("/api/v1/namespaces/kube-system/services/kube-dns")).spec;
  assert.match(
    await at.exec("client", "cat /etc/resolv.conf"),
    new RegExp(`^nameserver ${literally(clusterIP)}$`, "m"),
  );
}

async function resolvePartialNames(at: TestNamespace): Promise<void> {
  const { spec } = await at.create(serviceOf("normal"));
  await at.create(serviceOf("headless", { clusterIP: "None" }));
  const pod = serverPod("server", { labels: { app: "server" }, spec: { hostname: "web", subdomain: "headless" } });
  const { status } = await at.runPod(pod);
  await at.runPod(podOf("client", PAUSE));
  const addressOf = (ip: string): RegExp => new RegExp(`Address: ${literally(ip)}$`, "m");
  for (const suffix of ["", `.${at.name}`, `.${at.name}.svc`, `.${at.name}.svc.cluster.local`]) {
    await expectAnswer(at, `normal${suffix}`, addressOf(spec.clusterIP));
    await expectAnswer(at, `headless${suffix}`, addressOf(status.podIP));
  }
  const domain = `${at.name}.svc`;
  await expectAnswer(at, `_http._tcp.normal.${domain}`, /service = 0 100 80 normal\./, "srv");
  await expectAnswer(at, `_http._tcp.headless.${domain}`, /service = 0 100 8080 web\.headless\./, "srv");
}

async function resolveExternalName(at: TestNamespace): Promise<void> {
  const externalName = `first.${at.name}.svc.cluster.local`;
  await at.create(serviceOf("first"));
  await at.create(serviceOf("second"));
  const service = serviceOf("alias", { type: "ExternalName", externalName });
  await at.create(service);
  await at.runPod(podOf("client", PAUSE));
  const name = `alias.${at.name}.svc.cluster.local`;
  await expectAnswer(at, name, new RegExp(`canonical name = ${literally(externalName)}`));
  const next = externalName.replace("first", "second");
  await at.api.patch(at.pathOfObject(service), { spec: { externalName: next } });
  await expectAnswer(at, name, new RegExp(`canonical name = ${literally(next)}`));
  const { spec } = await at.api.update(at.pathOfObject(service), ({ spec }) => {
    Object.assign(spec, { type: "ClusterIP", externalName: "", ports: [{ port: 80, name: "http" }] });
  });
  await expectAnswer(at, name, new RegExp(`Address: ${literally(spec.clusterIP)}$`, "m"));
  assert.doesNotMatch(await lookUp(at, name), /canonical name/);
}

const SERVERS = 3;

async function runServers(at: TestNamespace): Promise<readonly Json[]> {
  const names = Array.from({ length: SERVERS }, (_, index) => `netserver-${index}`);
  return await Promise.all(names.map((name) => at.runPod(serverPod(name))));
}

/** A container reaches each server, through a server that repeats its requests. */
function testPodTraffic(protocol: "http" | "udp"): Behaviour {
  return async (at) => {
    const servers = await runServers(at);
    const { status } = await at.runPod(serverPod("test-container-pod"));
    await at.runPod(podOf("client", PAUSE));
    for (const { metadata, status: target } of servers) {
      const dial =
        protocol === "http"
          ? `fetch?url=${encodeURIComponent(`http://${target.podIP}:8080/hostname`)}`
          : `dial?host=${target.podIP}&port=8081`;
      const answer = await at.exec("client", `wget -q -O - 'http://${status.podIP}:8080/${dial}'`);
      assert.equal(answer.trim(), metadata.name);
    }
  };
}

/** A process in the node's network, which is that of this test, reaches each server. */
function testNodeTraffic(protocol: "http" | "udp"): Behaviour {
  return async (at) => {
    for (const { metadata, status } of await runServers(at)) {
      const ip: string = status.podIP;
      const answer =
        protocol === "http" ? await (await fetch(`http://${ip}:8080/hostname`)).text() : await sendDatagram(ip, 8081);
      assert.equal(answer.trim(), metadata.name);
    }
  };
}

async function sendDatagram(host: string, port: number): Promise<string> {
  const socket = createSocket("udp4");
  try {
    const answered = once(socket, "message", { signal: AbortSignal.timeout(10_000) });
    socket.send("hostname", port, host);
    const [message] = await answered;
    return String(message);
  } finally {
    socket.close();
  }
}

const methods = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];

/** Pod and service pass on requests of every method; `more` is what follows `/proxy`. */
function testProxyMethods(more: string): Behaviour {
  return async (at) => {
    await at.runPod(serverPod("server"));
    const service = serviceOf("web", { ports: [{ name: "portname", port: 80, targetPort: 8080 }] });
    await at.create(service);
    const targets = ["pods/server:8080", "services/web:portname", "services/web:80", "services/http:web:portname"];
    await until("the endpoints of the service", async () => {
      return (await at.api.send(`GET ${at.path("services/web:80/proxy/")}`)).status === 200;
    });
    for (const target of targets) {
      const { status, headers } = await at.api.send(`GET ${at.path(`${target}/proxy`)}`);
      assert.equal(status, 301, "a path without an end is redirected");
      assert.match(headers.location ?? "", /\/proxy\/$/);
      for (const method of methods) {
        const response = await at.api.send(`${method} ${at.path(`${target}/proxy${more}`)}`);
        assert.equal(response.status, 200, `${method} ${target}: ${response.text}`);
        assert.equal(response.headers["x-method"], method);
        if (method === "HEAD") continue;
        assert.equal(response.json.method, method);
        assert.equal(response.json.host, "server");
        assert.equal(response.json.path, more);
      }
    }
  };
}

/** Pod, service and node answer through the API server. */
async function proxyThrough(at: TestNamespace): Promise<void> {
  await at.runPod(serverPod("server"));
  await at.create(serviceOf("web"));
  await until("an answer of the service", async () => {
    return (await at.api.send(`GET ${at.path("services/web:http/proxy/hostname")}`)).text === "server";
  });
  assert.equal((await at.api.send(`GET ${at.path("pods/server:8080/proxy/hostname")}`)).text, "server");
  assert.equal((await at.api.send(`GET ${at.path("pods/http:server:8080/proxy/hostname")}`)).text, "server");
  const node = (await at.node()).metadata.name;
  const logs = await at.api.send(`GET /api/v1/nodes/${node}/proxy/logs/`);
  assert.equal(logs.status, 200, logs.text);
  assert.match(logs.text, /<pre>/);
}

export const traffic: Behaviours = {
  "DNS should provide DNS for ExternalName services": resolveExternalName,
  "DNS should provide DNS for the cluster": resolveCluster,
  "DNS should resolve DNS of partial qualified names for services": resolvePartialNames,
  "Networking Granular Checks: Pods should function for intra-pod communication: http": testPodTraffic("http"),
  "Networking Granular Checks: Pods should function for intra-pod communication: udp": testPodTraffic("udp"),
  "Networking Granular Checks: Pods should function for node-pod communication: http": testNodeTraffic("http"),
  "Networking Granular Checks: Pods should function for node-pod communication: udp": testNodeTraffic("udp"),
  "Proxy version v1 A set of valid responses are returned for both pod and service Proxy": testProxyMethods("/"),
  "Proxy version v1 A set of valid responses are returned for both pod and service ProxyWithPath":
    testProxyMethods("/some/path/with/HEAD"),
  "Proxy version v1 should proxy through a service and a pod": proxyThrough,
};
