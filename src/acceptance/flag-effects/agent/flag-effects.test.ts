/** Every flag of `svc agent` that is marked effective, with what it changes: given as a flag, and in the file. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, get, type IncomingHttpHeaders } from "node:http";
import { request } from "node:https";
import { createServer, type Server } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t, { type Test } from "tap";
import { startAgent } from "../../../agent/agent.ts";
import { agentCommandLine } from "../../../agent/config/command-line.ts";
import { loadAgentConfig } from "../../../agent/config/load.ts";
import { agentFlags } from "../../../agent/flags.ts";
import { machineProblem } from "../../../agent/node/machine/machine-check.ts";
import { kernelProblems } from "../../../agent/node/machine/kernel-tunables.ts";
import { openFilesMax } from "../../../agent/node/machine/open-files.ts";
import { agentOptions } from "../../../agent/options.ts";
import { writeKubeconfig } from "../../../client/kubeconfig/kubeconfig.ts";
import type { Flag } from "../../../flags/flag.ts";
import { agentGates } from "../../../flags/gate-tables/agent.ts";
import { logOptions } from "../../../flags/log-options.ts";
import { fileDirectory } from "../../../testing/std/file-directory.ts";
import { createLogger, silentLogger } from "../../../std/log/logger.ts";
import { type AgentFlagName, type Settings, type TestAgent, testAgent } from "../../../testing/agent/flag-harness.ts";
import { CLIENT_AUTH, makeCertificate, makeServerCertificate } from "../../../testing/http/test-certificates.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";

interface Effect {
  /** The flags under test, and others that they need. */
  readonly set: Settings | (() => Promise<Settings>);
  readonly shows: (t: Test, agent: TestAgent) => Promise<void>;
}

const { ca, server } = await makeServerCertificate();
const user = await makeCertificate({ subject: [{ CN: ["u"] }], issuer: ca, usages: [CLIENT_AUTH] });
const files = fileDirectory(t, {
  "ca.crt": ca.cert,
  "server.crt": server.cert,
  "server.key": server.key,
  "resolv.conf": "nameserver 203.0.113.53\nsearch node.example.\n",
});
const flexDrivers = join(files, "flex");
const served: Settings = {
  "enable-server": "true",
  address: "127.0.0.1",
  "tls-cert-file": join(files, "server.crt"),
  "tls-private-key-file": join(files, "server.key"),
  "anonymous-auth": "true",
};

/** Who may, the API server says. */
const judged: Settings = { ...served, "authorization-mode": "Webhook" };

/** How many runs the runtime still has of a container that was started four times. */
async function runsKept(agent: TestAgent): Promise<number> {
  agent.fake.programs.set("c", (attempt) => (attempt < 3 ? { exitAfterMs: 100, exitCode: 1 } : {}));
  await agent.start();
  agent.pod("p");
  const starts = () => agent.fake.calls.filter(({ method }) => method === "startContainer").length;
  await agent.until("the fourth run", () => starts() === 4);
  return agent.fake.named("c").length;
}

interface Answer {
  readonly status: number;
  readonly protocol: string | null;
  readonly cipher: string;
  readonly fingerprint: string;
}

function ask(port: number, options: Readonly<Record<string, unknown>> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: "127.0.0.1", port, path: "/pods", rejectUnauthorized: false, agent: false, ...options },
      (response) => {
        const socket = response.socket as import("node:tls").TLSSocket;
        const found = {
          status: response.statusCode ?? 0,
          protocol: socket.getProtocol(),
          cipher: socket.getCipher().standardName,
          fingerprint: socket.getPeerCertificate().fingerprint256,
        };
        response.resume().on("end", () => resolve(found));
      },
    );
    sent.on("error", reject).end();
  });
}

function askPlain(host: string, port: number, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get({ host, port, path, agent: false }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    }).on("error", reject);
  });
}

async function listening(server: Server, ...where: readonly unknown[]): Promise<number> {
  await new Promise<void>((resolve) => server.listen(...(where as []), resolve));
  const address = server.address();
  return address === null || typeof address === "string" ? 0 : address.port;
}

/** A port that nothing listens on now. */
async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listening(server, 0, "127.0.0.1");
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const port = async (name: AgentFlagName, settings: Settings = {}): Promise<Settings> => ({
  ...settings,
  [name]: String(await freePort()),
});

const onNode =
  (expected: object) =>
  async (t: Test, agent: TestAgent): Promise<void> => {
    await agent.start();
    t.match(agent.node(), expected);
  };

type Call = { readonly config?: Readonly<Record<string, unknown>>; readonly sandboxConfig?: unknown };

/** What the runtime is asked for a pod of one container. */
const onRuntime =
  (method: "createContainer" | "runPodSandbox", expected: object, container: object = {}, spec: object = {}) =>
  async (t: Test, agent: TestAgent): Promise<void> => {
    await agent.start();
    const own = { name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent" as const, ...container };
    agent.pod("web", { containers: [own], ...spec });
    await agent.running("web");
    const call = agent.fake.calls.find((each) => each.method === method)?.request as Call;
    t.match(call.config, expected);
  };

async function turnOf(agent: TestAgent, milliseconds: number): Promise<void> {
  await agent.clock.advance(milliseconds);
  await setTimeout(2);
}

/** The machine's packet filter stays as it is. */
const iptables = async (): Promise<void> => {};

/** How many pulls the runtime has been asked for at once by three pods, with all pulls held up. */
async function pulls(agent: TestAgent, expected: number): Promise<number> {
  await agent.start();
  const release = agent.fake.hold("pullImage");
  for (const name of ["a", "b", "c"]) {
    agent.fake.pullable.set(`${name}:1`, { id: name });
    agent.pod(name, { containers: [{ name, image: `${name}:1`, imagePullPolicy: "Always" }] });
  }
  const begun = () => agent.fake.calls.filter(({ method }) => method === "pullImage").length;
  // Files of the node are read in between, which takes real time; the clock that the limits go by hardly moves.
  const isThere = () => agent.fake.sandboxes.size === 3 && begun() >= expected;
  for (let turn = 0; !isThere() && turn < 1000; turn++) await turnOf(agent, 1);
  // For a pull too many.
  for (let turn = 0; turn < 20; turn++) await turnOf(agent, 0);
  const count = begun();
  release();
  return count;
}

/** Lines that a logger made from the flags writes, by stream, and the timers it leaves. */
function logged(agent: TestAgent) {
  const clock = new FakeClock();
  const out: string[] = [];
  const err: string[] = [];
  let flushes = 0;
  const sink = (lines: string[]) => ({
    write: (line: string) => lines.push(line),
    flushSync: () => {
      flushes += 1;
    },
  });
  const log = createLogger(logOptions(agent.effective.flags), { clock, stdout: sink(out), stderr: sink(err) });
  log.info("hello");
  log.v(3)?.info("three");
  log.child("store").v(5)?.info("five");
  log.error("oh");
  return {
    clock,
    out: out.join(""),
    err: err.join(""),
    flushes: () => flushes,
    [Symbol.dispose]: () => log[Symbol.dispose](),
  };
}

const alpha = { "feature-gates": "LoggingAlphaOptions=true" };

/** Four pods begin; their events come one a second after the first `burst`. */
async function eventsLimited(t: Test, agent: TestAgent, burst: number): Promise<void> {
  const began = agent.clock.monotonic();
  await agent.start();
  for (let pod = 0; pod < 4; pod++) agent.pod(`web${pod}`);
  for (let pod = 0; pod < 4; pod++) await agent.running(`web${pod}`);
  const told = agent.api.under("/api/v1/namespaces/default/events").length;
  const seconds = (agent.clock.monotonic() - began) / 1000;
  t.ok(told <= burst + seconds + 1, `${told} events in ${seconds} s`);
}

/** Lets a container's log grow over its size so many times, and returns how many files there are. */
async function rotated(agent: TestAgent, times: number): Promise<() => number> {
  await agent.start();
  const made = agent.pod("web");
  await agent.running("web");
  const directory = join(agent.config.podLogsDir, `default_web_${made.metadata?.uid}`, "c");
  mkdirSync(directory, { recursive: true });
  const rotations = () => agent.fake.calls.filter(({ method }) => method === "reopenContainerLog").length;
  for (let time = 0; time < times; time++) {
    writeFileSync(join(directory, "0.log"), "x".repeat(4096));
    await agent.until("the log is rotated", () => rotations() > time);
  }
  return () => readdirSync(directory).length;
}

const staticPodJson = JSON.stringify({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web" },
  spec: { containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent" }] },
});
const staticPath = join(files, "static");
mkdirSync(staticPath);
writeFileSync(join(staticPath, "web.json"), staticPodJson);

/** Whoever asks for pods is remembered by headers. */
const asked: IncomingHttpHeaders[] = [];
const manifestServer = createHttpServer((request, response) => {
  asked.push(request.headers);
  response.end(staticPodJson);
});
const manifestUrl = `http://127.0.0.1:${await listening(manifestServer, 0, "127.0.0.1")}/pods`;
t.teardown(() => manifestServer.close());

/** Waits until a file of the control groups says so. */
async function says(t: Test, agent: TestAgent, path: string, text: string): Promise<void> {
  await agent.until(`${path} says ${text}`, () => agent.cgroup(path) === text);
  t.pass(path);
}

/** A plugin that answers with what its configuration calls it. */
const binDir = join(files, "plugins");
mkdirSync(binDir);
for (const [name, mode] of [
  ["plug", 0o755],
  ["plain", 0o644],
] as const) {
  const auth = { "r.test": { username: name, password: "x" } };
  const kind = "CredentialProviderResponse";
  const answer = { apiVersion: "credentialprovider.svclet.svc.io/v1", kind, cacheKeyType: "Image", auth };
  writeFileSync(join(binDir, name), `#!/bin/sh\nread -r request; echo '${JSON.stringify(answer)}'\n`, { mode });
}
const providerConfig = (name: string): string => {
  const apiVersion = "credentialprovider.svclet.svc.io/v1";
  const provider = { name, matchImages: ["*.test"], defaultCacheDuration: "1m", apiVersion };
  const path = join(files, `${name}.json`);
  const kind = "CredentialProviderConfig";
  writeFileSync(path, JSON.stringify({ apiVersion: "svclet.config.svc.io/v1", kind, providers: [provider] }));
  return path;
};

const effects: Partial<Record<AgentFlagName, Effect>> = {
  "pod-manifest-path": {
    set: { "pod-manifest-path": staticPath },
    async shows(t, agent) {
      await agent.start();
      await agent.running("web-n1");
      const annotations = { "kubernetes.io/config.source": "file" };
      t.match(agent.api.objects.get("/api/v1/namespaces/default/pods/web-n1"), { metadata: { annotations } });
    },
  },
  "file-check-frequency": {
    // Nothing tells of a directory whose own directory is made later.
    set: { "pod-manifest-path": join(files, "later/pods"), "file-check-frequency": "3s" },
    async shows(t, agent) {
      await agent.start();
      const path = agent.config.sources.manifestPath;
      rmSync(dirname(path), { recursive: true, force: true });
      await agent.clock.advance(3000);
      mkdirSync(path, { recursive: true });
      writeFileSync(join(path, "web.json"), staticPodJson);
      const began = agent.clock.monotonic();
      await agent.running("web-n1");
      t.ok(agent.clock.monotonic() - began < 10_000, "long before the 20 seconds that are the default");
    },
  },
  "manifest-url": {
    set: { "manifest-url": manifestUrl },
    async shows(t, agent) {
      await agent.start();
      await agent.running("web-n1");
      const annotations = { "kubernetes.io/config.source": "http" };
      t.match(agent.api.objects.get("/api/v1/namespaces/default/pods/web-n1"), { metadata: { annotations } });
    },
  },
  "manifest-url-header": {
    set: { "manifest-url": manifestUrl, "manifest-url-header": "x-site:edge-7,x-site:backup" },
    async shows(t, agent) {
      asked.length = 0;
      await agent.start();
      await agent.running("web-n1");
      t.equal(asked[0]?.["x-site"], "edge-7, backup");
    },
  },
  "http-check-frequency": {
    set: { "manifest-url": manifestUrl, "http-check-frequency": "2s" },
    async shows(t, agent) {
      asked.length = 0;
      await agent.start();
      const began = agent.clock.monotonic();
      await agent.until("it was asked for again", () => asked.length >= 4);
      t.ok(agent.clock.monotonic() - began < 15_000, "long before three times the 20 seconds that are the default");
    },
  },
  runonce: {
    set: { runonce: "true", "pod-manifest-path": staticPath },
    async shows(t, agent) {
      const { clock, fake } = agent;
      const running = await startAgent(agent.config, { clock, log: silentLogger, iptables, runtime: fake });
      let ended = false;
      const ran = running.ranOnce().finally(() => {
        ended = true;
      });
      await agent.until("all pods run", () => ended);
      await ran;
      t.equal(fake.calls.filter(({ method }) => method === "startContainer").length, 1);
      const closing = running.close();
      ended = false;
      void closing.finally(() => {
        ended = true;
      });
      await agent.until("the agent has stopped", () => ended);
      t.equal(fake.calls.filter(({ method }) => method === "stopContainer").length, 0, "the pod goes on");
    },
  },
  "hostname-override": { set: { "hostname-override": "Other" }, shows: onNode({ metadata: { name: "other" } }) },
  "provider-id": { set: { "provider-id": "cloud://7" }, shows: onNode({ spec: { providerID: "cloud://7" } }) },
  "node-ip": {
    set: { "node-ip": "192.0.2.9" },
    shows: onNode({ status: { addresses: [{ type: "InternalIP", address: "192.0.2.9" }] } }),
  },
  "enable-controller-attach-detach": {
    set: { "enable-controller-attach-detach": "false" },
    async shows(t, agent) {
      const keys = ["kubernetes", "svc"].map((each) => `volumes.${each}.io/controller-managed-attach-detach`);
      const annotations = Object.fromEntries(keys.map((key) => [key, "true"]));
      agent.api.put("/api/v1/nodes/n1", { kind: "Node", metadata: { name: "n1", annotations } });
      await agent.start();
      const left = (agent.node().metadata.annotations ?? {}) as Readonly<Record<string, string>>;
      t.same(
        keys.filter((key) => key in left),
        [],
        "no controller is asked to attach",
      );
    },
  },
  "volume-plugin-dir": {
    set: async () => ({ "volume-plugin-dir": flexDrivers }),
    async shows(t, agent) {
      const answer = `echo "$1" >> ${join(flexDrivers, "calls")}; echo '{"status":"Success","capabilities":{"attach":false}}'`;
      const driver = join(flexDrivers, "example.com~disk", "disk");
      mkdirSync(dirname(driver), { recursive: true });
      writeFileSync(driver, `#!/bin/sh\n${answer}\n`, { mode: 0o755 });
      await agent.start();
      agent.pod("p", { volumes: [{ name: "v", flexVolume: { driver: "example.com/disk" } }] });
      const calls = () => readFileSync(join(flexDrivers, "calls"), "utf8").split("\n");
      await agent.until("the driver mounts", () => existsSync(join(flexDrivers, "calls")) && calls().includes("mount"));
      t.same(calls().slice(0, 2), ["init", "mount"]);
      rmSync(join(flexDrivers, "calls"));
    },
  },
  "node-labels": { set: { "node-labels": "disk=fast" }, shows: onNode({ metadata: { labels: { disk: "fast" } } }) },
  "register-schedulable": {
    set: { "register-schedulable": "false" },
    shows: onNode({ spec: { unschedulable: true } }),
  },
  "register-with-taints": {
    set: { "register-with-taints": "a=b:NoSchedule" },
    shows: onNode({ spec: { taints: [{ key: "a", value: "b", effect: "NoSchedule" }] } }),
  },
  "register-node": {
    set: { "register-node": "false" },
    async shows(t, agent) {
      agent.api.put("/api/v1/nodes/n1", { kind: "Node", metadata: { name: "n1", labels: { by: "hand" } } });
      await agent.start();
      t.same(agent.node().metadata.labels, { by: "hand" }, "the node is left as somebody else made it");
      t.match(agent.node().status, { nodeInfo: { operatingSystem: "linux" } });
    },
  },
  svcconfig: {
    set: async () => {
      const file = join(files, "svcconfig");
      const address = `https://127.0.0.1:${await freePort()}`;
      await writeKubeconfig(file, { server: address, cluster: "c", context: "c", user: "u", ca: ca.cert, ...user });
      return { svcconfig: file };
    },
    async shows(t, agent) {
      const { hostname, port } = new URL(/https:\S+/.exec(readFileSync(agent.config.svcconfig ?? "", "utf8"))![0]);
      const asked = Promise.withResolvers<void>();
      const api = createServer((socket) => {
        socket.on("error", () => {}).destroy();
        asked.resolve();
      });
      await listening(api, Number(port), hostname);
      const running = await startAgent(agent.config, {
        clock: agent.clock,
        log: silentLogger,
        iptables,
        runtime: agent.fake,
      });
      running.ready().catch(() => {});
      await asked.promise;
      t.pass("the server that the file names was asked");
      await running.close();
      await new Promise((resolve) => api.close(resolve));
    },
  },
  "cert-dir": {
    set: () => port("port", { "enable-server": "true", address: "127.0.0.1" }),
    async shows(t, agent) {
      t.notOk(existsSync(join(agent.directory, "pki")));
      await agent.start();
      t.ok(existsSync(join(agent.directory, "pki", "svclet.crt")), "a pair was made and is kept there");
    },
  },
  "root-dir": {
    set: {},
    async shows(t, agent) {
      t.notOk(existsSync(join(agent.directory, "root", "pods")));
      await agent.start();
      t.ok(existsSync(join(agent.directory, "root", "pods")));
    },
  },
  "node-status-update-frequency": {
    set: { "node-status-update-frequency": "1s" },
    async shows(t, agent) {
      await agent.start();
      const asked = () => agent.fake.calls.filter(({ method }) => method === "status").length;
      const [before, began] = [asked(), agent.clock.now()];
      await agent.until("it has looked at the runtime five times", () => asked() >= before + 5);
      t.ok(agent.clock.now() - began < 40_000, "not every ten seconds");
    },
  },
  "node-status-max-images": {
    set: { "node-status-max-images": "1" },
    async shows(t, agent) {
      agent.fake.addImage("other:1", { size: 5000n });
      await agent.start();
      t.match(agent.node().status, { images: [{ names: ["other:1"] }] });
      t.equal((agent.node().status as { images: unknown[] }).images.length, 1);
    },
  },
  "maximum-dead-containers-per-container": {
    set: { "maximum-dead-containers-per-container": "2" },
    async shows(t, agent) {
      t.equal(await runsKept(agent), 3, "two that ended, and the newest");
    },
  },
  "minimum-container-ttl-duration": {
    set: { "minimum-container-ttl-duration": "1h", "maximum-dead-containers-per-container": "0" },
    async shows(t, agent) {
      t.equal(await runsKept(agent), 4);
    },
  },
  "sync-frequency": {
    set: { "sync-frequency": "7s" },
    async shows(t, agent) {
      t.equal(agent.config.pods.syncMs, 7000);
      await agent.start();
      agent.pod("web");
      await agent.running("web");
      t.ok((agent.clock.untilNext ?? 0) <= 7000);
    },
  },
  address: {
    set: () => port("port", { ...served, address: "127.0.0.2" }),
    async shows(t, agent) {
      await agent.start();
      t.equal((await ask(agent.config.server.port, { host: "127.0.0.2" })).status, 200);
      await t.rejects(ask(agent.config.server.port), { code: "ECONNREFUSED" });
    },
  },
  port: {
    set: () => port("port", served),
    async shows(t, agent) {
      t.equal((await agent.start()).port, agent.config.server.port);
      t.equal((await ask(agent.config.server.port)).status, 200);
    },
  },
  "enable-server": {
    set: () => port("port", { ...served, "enable-server": "false" }),
    async shows(t, agent) {
      await agent.start();
      await t.rejects(ask(agent.config.server.port), { code: "ECONNREFUSED" });
    },
  },
  "read-only-port": {
    set: async () => ({ ...(await port("port", served)), ...(await port("read-only-port")) }),
    async shows(t, agent) {
      await agent.start();
      t.equal(await askPlain("127.0.0.1", agent.config.server.readOnlyPort, "/pods"), 200);
    },
  },
  "healthz-port": {
    set: () => port("healthz-port"),
    async shows(t, agent) {
      await agent.start();
      t.equal(await askPlain("127.0.0.1", agent.config.server.healthzPort, "/healthz"), 200);
    },
  },
  "healthz-bind-address": {
    set: () => port("healthz-port", { "healthz-bind-address": "127.0.0.3" }),
    async shows(t, agent) {
      await agent.start();
      t.equal(await askPlain("127.0.0.3", agent.config.server.healthzPort, "/healthz"), 200);
    },
  },
  "enable-debugging-handlers": {
    set: () => port("port", { ...served, "enable-debugging-handlers": "false" }),
    async shows(t, agent) {
      const { port } = await agent.start();
      agent.pod("web");
      await agent.running("web");
      const path = "/containerLogs/default/web/c";
      t.equal((await ask(port, { path, method: "POST" })).status, 404, "there is no such route, not even for others");
    },
  },
  "tls-cert-file": {
    set: () => port("port", served),
    async shows(t, agent) {
      const { port } = await agent.start();
      const { X509Certificate } = await import("node:crypto");
      t.equal((await ask(port)).fingerprint, new X509Certificate(server.cert).fingerprint256);
    },
  },
  "tls-min-version": {
    set: () => port("port", { ...served, "tls-min-version": "VersionTLS13" }),
    async shows(t, agent) {
      const { port } = await agent.start();
      t.equal((await ask(port)).protocol, "TLSv1.3");
      await t.rejects(ask(port, { maxVersion: "TLSv1.2" }));
    },
  },
  "tls-cipher-suites": {
    set: () => port("port", { ...served, "tls-cipher-suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" }),
    async shows(t, agent) {
      const { port } = await agent.start();
      const only = { maxVersion: "TLSv1.2" };
      t.equal((await ask(port, only)).cipher, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384");
      await t.rejects(ask(port, { ...only, ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" }));
    },
  },
  "anonymous-auth": {
    set: () => port("port", { ...served, "anonymous-auth": "false" }),
    async shows(t, agent) {
      const { port } = await agent.start();
      t.equal((await ask(port)).status, 401);
    },
  },
  "authorization-webhook-cache-authorized-ttl": {
    set: () => port("port", { ...judged, "authorization-webhook-cache-authorized-ttl": "5s" }),
    async shows(t, agent) {
      agent.api.allowed.add("system:anonymous get nodes/proxy");
      const { port } = await agent.start();
      for (let time = 1; time <= 2; time++) {
        for (let again = 0; again < 2; again++) t.equal((await ask(port)).status, 200);
        t.equal(agent.api.accessReviews, time, "asked once in five seconds");
        await agent.clock.advance(6_000);
      }
    },
  },
  "authorization-webhook-cache-unauthorized-ttl": {
    set: () => port("port", { ...judged, "authorization-webhook-cache-unauthorized-ttl": "5s" }),
    async shows(t, agent) {
      const { port } = await agent.start();
      for (let time = 1; time <= 2; time++) {
        for (let again = 0; again < 2; again++) t.equal((await ask(port)).status, 403);
        t.equal(agent.api.accessReviews, time, "asked once in five seconds");
        await agent.clock.advance(6_000);
      }
    },
  },
  "authentication-token-webhook": {
    set: () => port("port", { ...served, "anonymous-auth": "false", "authentication-token-webhook": "true" }),
    async shows(t, agent) {
      agent.api.tokens.set("sesame", "ali");
      const { port } = await agent.start();
      const by = async (token: string) => (await ask(port, { headers: { authorization: `Bearer ${token}` } })).status;
      t.equal(await by("sesame"), 200);
      t.equal(await by("else"), 401);
    },
  },
  "authentication-token-webhook-cache-ttl": {
    set: () =>
      port("port", {
        ...served,
        "anonymous-auth": "false",
        "authentication-token-webhook": "true",
        "authentication-token-webhook-cache-ttl": "5s",
      }),
    async shows(t, agent) {
      agent.api.tokens.set("sesame", "ali");
      const { port } = await agent.start();
      for (let time = 1; time <= 2; time++) {
        for (let again = 0; again < 2; again++) await ask(port, { headers: { authorization: "Bearer sesame" } });
        t.equal(agent.api.reviews, time, "asked once in five seconds");
        await agent.clock.advance(6_000);
      }
    },
  },
  "client-ca-file": {
    set: () => port("port", { ...served, "anonymous-auth": "false", "client-ca-file": join(files, "ca.crt") }),
    async shows(t, agent) {
      const { port } = await agent.start();
      t.equal((await ask(port)).status, 401);
      t.equal((await ask(port, { cert: user.cert, key: user.key })).status, 200);
    },
  },
  "container-runtime-endpoint": {
    set: {},
    async shows(t, agent) {
      await connected(t, agent, agent.config.runtime.endpoint);
    },
  },
  "image-service-endpoint": {
    set: { "image-service-endpoint": `unix://${join(files, "images.sock")}` },
    async shows(t, agent) {
      await connected(t, agent, agent.config.runtime.imageEndpoint);
    },
  },
  "runtime-request-timeout": {
    set: { "runtime-request-timeout": "40ms" },
    async shows(t, agent) {
      const { createCriClient } = await import("../../../agent/runtime/cri.ts");
      const { systemClock } = await import("../../../std/time/clock.ts");
      const { endpoint, requestTimeoutMs } = agent.config.runtime;
      const silent = createServer((socket) => void socket.on("error", () => {}).unref());
      await listening(silent, endpoint.slice("unix://".length));
      using cri = createCriClient({ endpoint, requestTimeoutMs, clock: systemClock });
      await t.rejects(cri.runtime.version({}), { code: "DEADLINE_EXCEEDED" });
      silent.close();
    },
  },
  "serialize-image-pulls": {
    set: { "serialize-image-pulls": "false" },
    async shows(t, agent) {
      t.equal(await pulls(agent, 3), 3, "three at once");
    },
  },
  "registry-qps": {
    set: { "registry-qps": "1", "registry-burst": "1", "serialize-image-pulls": "false" },
    async shows(t, agent) {
      t.equal(await pulls(agent, 1), 1);
    },
  },
  "registry-burst": {
    set: { "registry-qps": "1", "registry-burst": "2", "serialize-image-pulls": "false" },
    async shows(t, agent) {
      t.equal(await pulls(agent, 2), 2);
    },
  },
  "image-credential-provider-config": {
    set: { "image-credential-provider-config": providerConfig("plug"), "image-credential-provider-bin-dir": binDir },
    async shows(t, agent) {
      await agent.start();
      agent.pod("web", { containers: [{ name: "c", image: "r.test/app:1" }] });
      const pulls = () => agent.fake.calls.filter(({ method }) => method === "pullImage");
      await agent.until("the image is pulled", () => pulls().length > 0);
      t.match(pulls()[0]?.request, { auth: { username: "plug" } });
    },
  },
  "image-credential-provider-bin-dir": {
    set: { "image-credential-provider-config": providerConfig("plain"), "image-credential-provider-bin-dir": binDir },
    async shows(t, agent) {
      await t.rejects(agent.start(), /plugin binary .*\/plain is not executable/);
    },
  },
  "cgroup-driver": {
    set: { "cgroup-driver": "systemd" },
    async shows(t, agent) {
      await onRuntime("runPodSandbox", { linux: { cgroupParent: /^kubepods-besteffort-pod.*\.slice$/ } })(t, agent);
      const made = agent.systemd.map(({ method, words }) => `${method} ${words[0]}`);
      for (const name of ["kubepods.slice", "kubepods-besteffort.slice", "kubepods-besteffort-poduid_web.slice"]) {
        t.ok(made.includes(`StartTransientUnit ${name}`), name);
      }
      await says(t, agent, "cpu/kubepods.slice/kubepods-besteffort.slice/cpu.shares", "2");
    },
  },
  "cgroups-per-qos": {
    set: { "cgroups-per-qos": "false", "enforce-node-allocatable": "" },
    async shows(t, agent) {
      await onRuntime("runPodSandbox", { linux: { cgroupParent: "" } })(t, agent);
      t.notOk(existsSync(join(agent.directory, "cgroup/cpu/kubepods")));
    },
  },
  "enforce-node-allocatable": {
    set: { "enforce-node-allocatable": "", "system-reserved": "memory=512Mi" },
    async shows(t, agent) {
      await agent.start();
      const { memory = "" } = (agent.node().status as { capacity: Record<string, string> }).capacity;
      await says(t, agent, "memory/kubepods/memory.limit_in_bytes", String(Number.parseInt(memory, 10) * 1024));
    },
  },
  "system-reserved-cgroup": {
    set: {
      "enforce-node-allocatable": "pods,system-reserved",
      "system-reserved": "memory=512Mi",
      "system-reserved-cgroup": "/sys.slice",
    },
    async shows(t, agent) {
      await t.rejects(
        agent.start(),
        /Failed to enforce System Reserved Cgroup Limits on "\/sys.slice": .*missing paths/,
      );
      for (const name of ["cpu", "memory", "pids"]) mkdirSync(join(agent.directory, `cgroup/${name}/sys.slice`));
      await agent.start();
      await says(t, agent, "memory/sys.slice/memory.limit_in_bytes", String(512 * 2 ** 20));
      const { memory = "" } = (agent.node().status as { capacity: Record<string, string> }).capacity;
      const rest = Number.parseInt(memory, 10) * 1024 - 512 * 2 ** 20;
      await says(t, agent, "memory/kubepods/memory.limit_in_bytes", String(rest));
    },
  },
  "svc-reserved-cgroup": {
    set: {
      "enforce-node-allocatable": "svc-reserved",
      "svc-reserved": "cpu=500m,pid=100",
      "svc-reserved-cgroup": "/svc.slice",
    },
    async shows(t, agent) {
      for (const name of ["cpu", "memory", "pids"]) mkdirSync(join(agent.directory, `cgroup/${name}/svc.slice`));
      await agent.start();
      await says(t, agent, "cpu/svc.slice/cpu.shares", "512");
      await says(t, agent, "pids/svc.slice/pids.max", "100");
    },
  },
  "svclet-cgroups": {
    set: { "svclet-cgroups": "/edge/agent" },
    async shows(t, agent) {
      await agent.start();
      for (const name of ["cpu", "memory"]) {
        await says(t, agent, `${name}/edge/agent/cgroup.procs`, `${process.pid}`);
      }
    },
  },
  "system-cgroups": {
    set: { "system-cgroups": "/system", "cgroup-root": "/edge" },
    async shows(t, agent) {
      writeFileSync(join(agent.directory, "cgroup/cpu/cgroup.procs"), "1\n");
      await agent.start();
      t.ok(existsSync(join(agent.directory, "cgroup/memory/system")));
    },
  },
  "qos-reserved": {
    set: { "qos-reserved": "memory=50%", "feature-gates": "QOSReserved=true" },
    async shows(t, agent) {
      await agent.start();
      const resources = { limits: { cpu: "1m", memory: "64Mi" }, requests: { cpu: "1m", memory: "64Mi" } };
      agent.pod("web", { containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent", resources }] });
      await agent.running("web");
      const { memory = "" } = (agent.node().status as { allocatable: Record<string, string> }).allocatable;
      const rest = String(Number.parseInt(memory, 10) * 1024 - 32 * 2 ** 20);
      await says(t, agent, "memory/kubepods/burstable/memory.limit_in_bytes", rest);
      await says(t, agent, "memory/kubepods/besteffort/memory.limit_in_bytes", rest);
    },
  },
  "pod-max-pids": {
    set: { "pod-max-pids": "123" },
    async shows(t, agent) {
      await agent.start();
      const { metadata } = agent.pod("p");
      await agent.running("p");
      const path = join(agent.directory, `cgroup/pids/kubepods/besteffort/pod${metadata?.uid}/pids.max`);
      t.equal(readFileSync(path, "utf8"), "123");
    },
  },
  "cgroup-root": {
    set: { "cgroup-root": "/edge" },
    shows: onRuntime("runPodSandbox", { linux: { cgroupParent: /^\/edge\/kubepods\// } }),
  },
  "cpu-cfs-quota": {
    set: { "cpu-cfs-quota": "false" },
    async shows(t, agent) {
      await onRuntime("createContainer", {}, { resources: { limits: { cpu: "500m" } } })(t, agent);
      const call = agent.fake.calls.find((each) => each.method === "createContainer")?.request as Call;
      t.equal(
        (call.config?.linux as { resources?: { cpuQuota?: bigint } } | undefined)?.resources?.cpuQuota,
        undefined,
      );
    },
  },
  "cpu-cfs-quota-period": {
    set: { "cpu-cfs-quota-period": "10ms", "feature-gates": "CustomCPUCFSQuotaPeriod=true" },
    shows: onRuntime(
      "createContainer",
      { linux: { resources: { cpuPeriod: 10_000n, cpuQuota: 5_000n } } },
      { resources: { limits: { cpu: "500m" } } },
    ),
  },
  "container-log-max-files": {
    set: { "container-log-max-files": "2", "container-log-max-size": "1Ki" },
    async shows(t, agent) {
      const count = await rotated(agent, 4);
      await agent.until("all but the last is removed", () => count() <= 2);
      t.pass();
    },
  },
  "container-log-max-size": {
    set: { "container-log-max-size": "1Ki" },
    async shows(t, agent) {
      t.ok((await rotated(agent, 1))() > 0, "4 KiB are too much");
    },
  },
  "max-pods": { set: { "max-pods": "7" }, shows: onNode({ status: { capacity: { pods: "7" } } }) },
  "pods-per-core": {
    set: { "pods-per-core": "1" },
    async shows(t, agent) {
      await agent.start();
      const { cpu, pods } = (agent.node().status as { capacity: Record<string, string> }).capacity;
      t.equal(pods, cpu);
    },
  },
  "svc-reserved": { set: { "svc-reserved": "cpu=300m" }, shows: onNode({ status: { allocatable: { cpu: /00m$/ } } }) },
  "system-reserved": {
    set: { "system-reserved": "cpu=200m", "svc-reserved": "cpu=100m" },
    shows: onNode({ status: { allocatable: { cpu: /700m$/ } } }),
  },
  "cluster-dns": {
    set: { "cluster-dns": "192.0.2.53" },
    shows: onRuntime("runPodSandbox", { dnsConfig: { servers: ["192.0.2.53"] } }, {}, { dnsPolicy: "ClusterFirst" }),
  },
  "cluster-domain": {
    set: { "cluster-dns": "192.0.2.53", "cluster-domain": "corp.example" },
    shows: onRuntime(
      "runPodSandbox",
      { dnsConfig: { searches: ["default.svc.corp.example", "svc.corp.example", "corp.example"] } },
      {},
      { dnsPolicy: "ClusterFirst" },
    ),
  },
  "resolv-conf": {
    set: { "resolv-conf": join(files, "resolv.conf") },
    shows: onRuntime("runPodSandbox", { dnsConfig: { servers: ["203.0.113.53"] } }, {}, { dnsPolicy: "Default" }),
  },
  "allowed-unsafe-sysctls": {
    set: { "allowed-unsafe-sysctls": "kernel.msg*" },
    shows: onRuntime(
      "runPodSandbox",
      { linux: { sysctls: { "kernel.msgmax": "1" } } },
      {},
      { securityContext: { sysctls: [{ name: "kernel.msgmax", value: "1" }] } },
    ),
  },
  "local-storage-capacity-isolation": {
    set: { "local-storage-capacity-isolation": "false" },
    async shows(t, agent) {
      await agent.start();
      agent.pod("web", {
        containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent" }],
        volumes: [{ name: "v", emptyDir: { sizeLimit: "1Ki" } }],
      });
      await agent.running("web");
      const volume = "root/pods/uid-web/volumes/kubernetes.io~empty-dir/v";
      writeFileSync(join(agent.directory, volume, "large"), Buffer.alloc(1024 * 1024));
      const until = agent.clock.now() + 30_000;
      await agent.until("half a minute passed", () => agent.clock.now() >= until);
      const path = "/api/v1/namespaces/default/pods/web";
      t.equal(agent.api.objects.get(path)?.status?.phase, "Running", "nobody measures the volume");
    },
  },
  "seccomp-default": {
    set: { "seccomp-default": "true" },
    shows: onRuntime("createContainer", { linux: { securityContext: { seccomp: { profileType: "RuntimeDefault" } } } }),
  },
  "pod-cidr": {
    set: { "pod-cidr": "10.9.0.0/24" },
    async shows(t, agent) {
      await agent.start();
      const told = agent.fake.calls.find(({ method }) => method === "updateRuntimeConfig")?.request;
      t.match(told, { runtimeConfig: { networkConfig: { podCidr: "10.9.0.0/24" } } });
    },
  },
  "make-iptables-util-chains": {
    set: { "make-iptables-util-chains": "false" },
    async shows(t, agent) {
      await agent.start();
      t.equal(agent.iptables.size, 0);
      await using other = await testAgent("flag", {});
      await other.start();
      await other.until("the others' chains are made", () =>
        other.iptables.has("ip6tables filter KUBE-KUBELET-CANARY"),
      );
    },
  },
  "max-open-files": {
    set: { "max-open-files": "9999" },
    async shows(t, agent) {
      await agent.start();
      t.equal((await openFilesMax()).soft, 9999);
    },
  },
  "oom-score-adj": {
    set: { "oom-score-adj": "17" },
    async shows(t, agent) {
      await agent.start();
      t.equal(readFileSync("/proc/self/oom_score_adj", "utf8").trim(), "17");
    },
  },
  "svc-api-qps": {
    set: { "svc-api-qps": "1", "svc-api-burst": "4" },
    async shows(t, agent) {
      await limitedRequests(t, agent, 4);
    },
  },
  "svc-api-burst": {
    set: { "svc-api-qps": "1", "svc-api-burst": "6" },
    async shows(t, agent) {
      await limitedRequests(t, agent, 6);
    },
  },
  "svc-api-content-type": {
    set: { "svc-api-content-type": "application/vnd.kubernetes.protobuf" },
    async shows(t, agent) {
      const types: (string | undefined)[] = [];
      const { transport } = agent.api;
      Object.assign(agent.api, {
        transport: (request: Parameters<typeof transport>[0]) => {
          if (request.method === "POST") types.push(request.headers["content-type"]);
          return transport(request);
        },
      });
      await agent.start();
      await agent.until("it has written something", () => types.length > 1);
      t.strictSame(types.slice(0, 2), ["application/vnd.kubernetes.protobuf", "application/json"], "and what is taken");
    },
  },
  "event-burst": {
    set: { "event-qps": "1", "event-burst": "2" },
    async shows(t, agent) {
      await eventsLimited(t, agent, 2);
    },
  },
  "event-qps": {
    set: { "event-qps": "1", "event-burst": "1" },
    async shows(t, agent) {
      await eventsLimited(t, agent, 1);
    },
  },
  "logging-format": {
    set: { "logging-format": "json", "feature-gates": "LoggingBetaOptions=true" },
    async shows(t, agent) {
      using log = logged(agent);
      t.match(JSON.parse(log.err.split("\n")[0]!), { msg: "hello" });
    },
  },
  "log-text-split-stream": {
    set: { "log-text-split-stream": "true", ...alpha },
    async shows(t, agent) {
      using log = logged(agent);
      t.match(log, { out: /hello/, err: /oh/ });
    },
  },
  "log-json-split-stream": {
    set: { "log-json-split-stream": "true", "logging-format": "json", ...alpha },
    async shows(t, agent) {
      using log = logged(agent);
      t.match(log, { out: /"hello"/, err: /"oh"/ });
    },
  },
  "log-text-info-buffer-size": {
    set: { "log-text-info-buffer-size": "4Ki", "log-text-split-stream": "true", ...alpha },
    async shows(t, agent) {
      using log = logged(agent);
      t.equal(log.clock.pending, 1, "a flush is due");
    },
  },
  "log-json-info-buffer-size": {
    set: {
      "log-json-info-buffer-size": "4Ki",
      "log-json-split-stream": "true",
      "logging-format": "json",
      ...alpha,
    },
    async shows(t, agent) {
      using log = logged(agent);
      t.equal(log.clock.pending, 1, "a flush is due");
    },
  },
  "log-flush-frequency": {
    set: {
      "log-flush-frequency": "2s",
      "log-text-info-buffer-size": "4Ki",
      "log-text-split-stream": "true",
      ...alpha,
    },
    async shows(t, agent) {
      using log = logged(agent);
      await log.clock.advance(1999);
      t.equal(log.flushes(), 0);
      await log.clock.advance(1);
      t.ok(log.flushes() > 0);
    },
  },
  v: {
    set: { v: "3" },
    async shows(t, agent) {
      using log = logged(agent);
      t.match(log.err, /three/);
      t.notMatch(log.err, /five/);
    },
  },
  vmodule: {
    set: { vmodule: "store=5" },
    async shows(t, agent) {
      using log = logged(agent);
      t.notMatch(log.err, /three/);
      t.match(log.err, /five/);
    },
  },
  "feature-gates": {
    set: { "feature-gates": "LoggingAlphaOptions=true", "log-text-split-stream": "true" },
    async shows(t, agent) {
      t.ok(agent.effective.gates.has("LoggingAlphaOptions"));
      t.throws(() => loadAgentConfig(["--log-text-split-stream"], {}), /needs feature gate LoggingAlphaOptions/);
    },
  },
};

/** What is tested once, for it is no setting of a running agent or is refused in another value. */
const apart: readonly AgentFlagName[] = [
  "authorization-mode",
  "bootstrap-svcconfig",
  "ca-hash",
  "config",
  "config-dir",
  "dry-run-config",
  "exit-on-lock-contention",
  "fail-cgroupv1",
  "fail-swap-on",
  "help",
  "join",
  "lock-file",
  "protect-kernel-defaults",
  "rotate-certificates",
  "rotate-server-certificates",
  "tls-private-key-file",
  "token",
  "version",
];

function fileWith(t: Test, text: string): string {
  const directory = t.testdir({
    "agent.yaml": `apiVersion: svclet.config.svc.io/v1beta1\nkind: SvcletConfiguration\n${text}`,
  });
  return join(directory, "agent.yaml");
}

t.test("agentFlags: --authorization-mode is Webhook where a file does not say otherwise", async (t) => {
  const mode = (...argv: string[]) => agentOptions(loadAgentConfig(argv, {})).server.authorization.mode;
  t.equal(mode(), "AlwaysAllow");
  t.equal(mode("--authorization-mode=Webhook"), "Webhook");
  const file = fileWith(t, "");
  t.equal(mode(`--config=${file}`), "Webhook");
  t.equal(mode(`--config=${file}`, "--authorization-mode=AlwaysAllow"), "AlwaysAllow");
});

t.test("agentFlags: --config and --config-dir are read, the latter over the former", async (t) => {
  const file = fileWith(t, "maxPods: 7\npodsPerCore: 3\n");
  const header = "apiVersion: svclet.config.svc.io/v1beta1\nkind: SvcletConfiguration\n";
  writeFileSync(join(dirname(file), "10.conf"), `${header}maxPods: 8\n`);
  const { flags } = loadAgentConfig([`--config=${file}`, `--config-dir=${dirname(file)}`], {});
  t.match(flags, { "max-pods": 8, "pods-per-core": 3 });
});

t.test("agentFlags: --dry-run-config, --version and --help print and do not run", async (t) => {
  const printed = (...argv: string[]) => agentCommandLine(argv, {}, { version: "v1.33.0" });
  t.match(printed("--dry-run-config", "--max-pods=7"), { kind: "exit", code: 0, stdout: /^maxPods: 7 +# flag/m });
  t.match(printed("--version"), { kind: "exit", code: 0, stdout: "agent v1.33.0\n" });
  t.match(printed("--version=v1.33.9-site"), { kind: "run", version: "v1.33.9-site" });
  t.match(printed("--help"), { kind: "exit", code: 0, stdout: /Usage:/ });
});

t.test("agentFlags: --protect-kernel-defaults refuses a kernel that is set otherwise", async (t) => {
  const directory = t.testdir({ vm: { overcommit_memory: "0\n", panic_on_oom: "0\n" } });
  const kernel = await kernelProblems(directory);
  t.same(kernel, ["invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0"]);
  const problem = (...argv: string[]) =>
    machineProblem(agentOptions(loadAgentConfig(argv, {})), { swap: [], cgroupV1: false, kernel });
  t.equal(problem(), undefined);
  t.match(problem("--protect-kernel-defaults"), /^invalid kernel flag: .*--protect-kernel-defaults=false$/);
});

t.test("agentFlags: --fail-swap-on and --fail-cgroupv1 refuse machines", async (t) => {
  const machine = { swap: ["/dev/sdb2"], cgroupV1: true };
  const problem = (settings: Settings, found = machine) =>
    machineProblem(
      agentOptions(
        loadAgentConfig(
          Object.entries(settings).map(([k, v]) => `--${k}=${v}`),
          {},
        ),
      ),
      found,
    );
  t.match(problem({}), /swap is on \(\/dev\/sdb2\).*--fail-swap-on=false/);
  t.match(problem({ "fail-swap-on": "false" }), /uses cgroup v1.*--fail-cgroupv1=false/);
  t.equal(problem({ "fail-swap-on": "false", "fail-cgroupv1": "false" }), undefined);
  t.equal(problem({}, { swap: [], cgroupV1: false }), undefined);
  const inFile = (text: string) =>
    agentOptions(loadAgentConfig([`--config=${fileWith(t, `authorization: {mode: AlwaysAllow}\n${text}`)}`], {}));
  t.equal(
    machineProblem(inFile("failSwapOn: false\n"), machine),
    undefined,
    "cgroup v1 is allowed once there is a file",
  );
  t.match(machineProblem(inFile("failSwapOn: false\nfailCgroupV1: true\n"), machine), /uses cgroup v1/);
});

t.test("agentGates: user namespaces, stop signals and tokens for plugins are had by opening their gates", async (t) => {
  const of = (...gates: readonly string[]) =>
    agentOptions(
      loadAgentConfig(
        gates.map((gate) => `--feature-gates=${gate}=true`),
        {},
      ),
    ).pods;
  t.match(of(), { stopSignals: false, idsPerPod: undefined });
  t.match(of("ContainerStopSignals", "KubeletServiceAccountTokenForCredentialProviders"), { stopSignals: true });
  t.match(of("UserNamespacesSupport"), { idsPerPod: 65_536 });
});

t.test("agentGates: image volumes, finer rights at the agent's server and other delays of restarts too", async (t) => {
  const of = (text: string, ...gates: readonly string[]) => {
    const file = fileWith(t, `authorization: {mode: AlwaysAllow}\n${text}`);
    return agentOptions(
      loadAgentConfig([`--config=${file}`, ...gates.map((gate) => `--feature-gates=${gate}=true`)], {}),
    );
  };
  const max = "crashLoopBackOff: {maxContainerRestartPeriod: 7s}\n";
  t.match(of(""), { volumes: { images: false }, server: { authorization: { fineGrained: false } } });
  t.match(of("", "ImageVolume"), { volumes: { images: true } });
  t.match(of("", "KubeletFineGrainedAuthz"), { server: { authorization: { fineGrained: true } } });
  t.same(of("").pods.restartDelays, { initialMs: 10_000, maxMs: 300_000 });
  t.same(of("", "ReduceDefaultCrashLoopBackOffDecay").pods.restartDelays, { initialMs: 1_000, maxMs: 60_000 });
  t.same(of(max, "KubeletCrashLoopBackOffMax").pods.restartDelays, { initialMs: 7_000, maxMs: 7_000 });
  const both = ["KubeletCrashLoopBackOffMax", "ReduceDefaultCrashLoopBackOffDecay"];
  t.same(of("", ...both).pods.restartDelays, { initialMs: 1_000, maxMs: 300_000 });
  t.throws(() => of(max), /crashLoopBackOff.maxContainerRestartPeriod: needs feature gate SvcletCrashLoopBackOffMax/);
  const closed = ["--rotate-server-certificates", "--feature-gates=RotateKubeletServerCertificate=false"];
  t.throws(() => loadAgentConfig(closed, {}), /serverTLSBootstrap: needs feature gate RotateSvcletServerCertificate/);
  t.equal(agentOptions(loadAgentConfig(closed.slice(1), {})).certificates.rotateServing, false);
});

t.test("agentGates: every gate that the agent asks for can be set", async (t) => {
  const directory = new URL("../../../agent", import.meta.url).pathname;
  const sources = readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((each) => each.endsWith(".ts"));
  const asked = sources.flatMap((each) => [
    ...readFileSync(join(directory, each), "utf8").matchAll(/gates\.(?:enabled|has)\("(\w+)"\)/g),
  ]);
  t.ok(asked.length > 4);
  for (const [, name = ""] of asked) t.equal(agentGates[name]?.effective, true, name);
});

t.test("configFields: fields without a flag have their effect too", async (t) => {
  const text = [
    "authorization: {mode: AlwaysAllow}",
    "configMapAndSecretChangeDetectionStrategy: Get",
    "containerLogMaxWorkers: 4",
    "containerLogMonitorInterval: 3s",
    "featureGates: {UserNamespacesSupport: true}",
    "maxParallelImagePulls: 3",
    "nodeLeaseDurationSeconds: 20",
    "nodeStatusReportFrequency: 1m",
    "podLogsDir: /var/log/edge",
    "singleProcessOOMKill: false",
    "userNamespaces: {idsPerPod: 131072}",
    "",
  ].join("\n");
  const options = agentOptions(loadAgentConfig([`--config=${fileWith(t, text)}`], {}));
  t.match(options, {
    podLogsDir: "/var/log/edge",
    runtime: { serializeImagePulls: false, parallelImagePulls: 3, singleProcessOomKill: false },
    node: { leaseDurationSeconds: 20, statusReportMs: 60_000 },
    pods: { logMonitorMs: 3000, logWorkers: 4, idsPerPod: 131_072, changeDetection: "Get" },
  });
  t.match(
    machineProblem(options, { swap: [], cgroupV1: true }),
    /^singleProcessOOMKill is false, which needs cgroup v2/,
  );
  t.equal(machineProblem(options, { swap: [], cgroupV1: false }), undefined);
});

/** A start that must not wait longer than it takes to connect. */
async function connected(t: Test, agent: TestAgent, endpoint: string): Promise<void> {
  const asked = Promise.withResolvers<void>();
  const runtime = createServer((socket) => {
    socket.on("error", () => {}).destroy();
    asked.resolve();
  });
  const other = agent.config.runtime.endpoint;
  await listening(runtime, endpoint.slice("unix://".length));
  const { transport } = agent.api;
  const running = await startAgent(agent.config, { clock: agent.clock, log: silentLogger, iptables, transport });
  running.ready().catch(() => {});
  await asked.promise;
  t.pass(`${endpoint} was asked${other === endpoint ? "" : ", though the runtime is elsewhere"}`);
  runtime.close();
  const closing = running.close();
  let closed = false;
  void closing.finally(() => {
    closed = true;
  });
  await agent.until("the agent has stopped", () => closed);
}

/** Requests for ConfigMaps of pods: at most `burst` before the clock moves, the others a second each. */
async function limitedRequests(t: Test, agent: TestAgent, burst: number): Promise<void> {
  const seen: string[] = [];
  const { transport } = agent.api;
  Object.assign(agent.api, {
    transport: (request: Parameters<typeof transport>[0]) => {
      if (/\/configmaps/.test(request.path)) seen.push(request.path);
      return transport(request);
    },
  });
  await agent.start();
  for (let pod = 0; pod < 8; pod++) {
    agent.pod(`p${pod}`, { volumes: [{ name: "v", configMap: { name: `m${pod}`, optional: true } }] });
  }
  const began = agent.clock.monotonic();
  for (let turn = 0; turn < 100; turn++) await agent.clock.advance(0);
  const atOnce = seen.length;
  t.ok(atOnce <= burst, `${atOnce} requests at once`);
  await agent.until("the others had their turn", () => seen.length >= 8);
  t.ok(agent.clock.monotonic() - began >= (8 - burst) * 1000, "seconds later");
}

const effective = Object.entries(agentFlags as Readonly<Record<string, Flag>>).filter(([, row]) => row.effective);

t.test("agentFlags: every flag that is marked effective has its test here", async (t) => {
  const tested = [...Object.keys(effects), ...apart].sort();
  t.same(tested, effective.map(([name]) => name).sort());
});

for (const [name, { set, shows }] of Object.entries(effects)) {
  const row: Flag = agentFlags[name as AgentFlagName];
  for (const form of row.config === undefined ? (["flag"] as const) : (["flag", "file"] as const)) {
    t.test(
      `agentFlags: --${name} has its effect, given ${form === "flag" ? "as a flag" : "in the file"}`,
      async (t) => {
        const settings = typeof set === "function" ? await set() : set;
        await using agent = await testAgent(form, settings);
        await shows(t, agent);
      },
    );
  }
}
