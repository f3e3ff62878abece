/** Helpers for the tests of the agent's flags. */

import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, get as httpGet, type IncomingHttpHeaders } from "node:http";
import { request } from "node:https";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import t, { type Test } from "tap";
import { startAgent } from "../../../agent/agent.ts";
import { logOptions } from "../../../flags/log-options.ts";
import { createLogger, silentLogger } from "../../../std/log/logger.ts";
import type { AgentFlagName, Settings, TestAgent } from "../../../testing/agent/flag-harness.ts";
import { CLIENT_AUTH, makeCertificate, makeServerCertificate } from "../../../testing/http/test-certificates.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { fileDirectory } from "../../../testing/std/file-directory.ts";
import { freePort } from "../../../testing/std/free-port.ts";

export interface Effect {
  /** The flags under test, and others that they need. */
  readonly set: Settings | (() => Promise<Settings>);
  readonly verify: (t: Test, agent: TestAgent) => Promise<void>;
}

export const { ca, server } = await makeServerCertificate();

export const user = await makeCertificate({ subject: [{ CN: ["u"] }], issuer: ca, usages: [CLIENT_AUTH] });

export const files = fileDirectory(t, {
  "ca.crt": ca.cert,
  "server.crt": server.cert,
  "server.key": server.key,
  "resolv.conf": "nameserver 203.0.113.53\nsearch node.example.\n",
});

export const flexDrivers = join(files, "flex");

export const servingFlags: Settings = {
  "enable-server": "true",
  address: "127.0.0.1",
  "tls-cert-file": join(files, "server.crt"),
  "tls-private-key-file": join(files, "server.key"),
  "anonymous-auth": "true",
};

/** Authorization by SubjectAccessReviews of the API server. */
export const webhookAuthorizationFlags: Settings = { ...servingFlags, "authorization-mode": "Webhook" };

/** The number of containers that the runtime still has after four runs of one. */
export async function countKeptContainers(agent: TestAgent): Promise<number> {
  agent.fake.programs.set("c", (attempt) => (attempt < 3 ? { exitAfterMs: 100, exitCode: 1 } : {}));
  await agent.start();
  agent.createPod("p");
  const starts = () => agent.fake.calls.filter(({ method }) => method === "startContainer").length;
  await agent.until("the fourth run", () => starts() === 4);
  return agent.fake.containersNamed("c").length;
}

export const UNUSED_IMAGE = "docker.io/library/unused:1";

/** Starts the agent with an image that no pod uses, and a pod. */
export async function createUnusedImage(agent: TestAgent): Promise<void> {
  agent.fake.imageDirectory = agent.directory;
  agent.fake.addImage(UNUSED_IMAGE);
  agent.createPod("p");
  await agent.start();
  await agent.untilRunning("p");
}

/** Advances the clock by up to two hours. Resolves with whether the condition holds. */
export async function untilCollection(agent: TestAgent, holds: () => boolean): Promise<boolean> {
  const began = agent.clock.now();
  while (!holds() && agent.clock.now() < began + 2 * 3_600_000) await waitForCollector(agent);
  return holds();
}

/** Reading the file system takes real time, for which the collector waits a second of the test's. */
async function waitForCollector(agent: TestAgent): Promise<void> {
  await setTimeout(10);
  await agent.clock.advance(10_000);
}

/** Whether an unused image is there, by minutes after the start. The image of a pod stays. */
export async function expectUnusedImage(
  t: Test,
  agent: TestAgent,
  ...expected: readonly (readonly [minutes: number, isPresent: boolean])[]
): Promise<void> {
  await createUnusedImage(agent);
  const began = agent.clock.now();
  for (const [minutes, isPresent] of expected) {
    while (agent.clock.now() < began + minutes * 60_000) await waitForCollector(agent);
    const isAsExpected = () => agent.fake.present.has(UNUSED_IMAGE) === isPresent;
    // On a busy machine a collection can fail because the file system is read too late; the next is 5 minutes later.
    const isLate = () => !isPresent && !isAsExpected() && agent.clock.now() < began + (minutes + 11) * 60_000;
    while (isLate()) await waitForCollector(agent);
    await agent.until(`${minutes} minutes after the start`, isAsExpected);
  }
  t.ok(agent.fake.containersNamed("c").length > 0);
  t.ok(agent.fake.present.size > 0, "the image of the pod stays");
}

export interface TlsResponse {
  readonly body: string;
  readonly status: number;
  readonly protocol: string | null;
  readonly cipher: string;
  readonly fingerprint: string;
}

export function get(port: number, options: Readonly<Record<string, unknown>> = {}): Promise<TlsResponse> {
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
        let body = "";
        response.setEncoding("latin1").on("data", (part: string) => {
          body += part;
        });
        response.on("end", () => resolve({ ...found, body }));
      },
    );
    sent.on("error", reject).end();
  });
}

export function getPlain(host: string, port: number, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    httpGet({ host, port, path, agent: false }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    }).on("error", reject);
  });
}

export async function listenOn(server: Server, ...where: readonly unknown[]): Promise<number> {
  await new Promise<void>((resolve) => server.listen(...(where as []), resolve));
  const address = server.address();
  return address === null || typeof address === "string" ? 0 : address.port;
}

export const withFreePort = async (name: AgentFlagName, settings: Settings = {}): Promise<Settings> => ({
  ...settings,
  [name]: String(await freePort()),
});

export const expectNode =
  (expected: object) =>
  async (t: Test, agent: TestAgent): Promise<void> => {
    await agent.start();
    t.match(agent.getNode(), expected);
  };

export type Call = { readonly config?: Readonly<Record<string, unknown>>; readonly sandboxConfig?: unknown };

/** Expects a configuration in the CRI request for a pod of one container. */
export const expectRuntimeCall =
  (method: "createContainer" | "runPodSandbox", expected: object, container: object = {}, spec: object = {}) =>
  async (t: Test, agent: TestAgent): Promise<void> => {
    await agent.start();
    const withDefaults = { name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent" as const, ...container };
    agent.createPod("web", { containers: [withDefaults], ...spec });
    await agent.untilRunning("web");
    const call = agent.fake.calls.find((each) => each.method === method)?.request as Call;
    t.match(call.config, expected);
  };

export async function advanceClock(agent: TestAgent, milliseconds: number): Promise<void> {
  await agent.clock.advance(milliseconds);
  await setTimeout(2);
}

/** Leaves the iptables rules of the machine unchanged. */
export const iptables = async (): Promise<void> => {};

/** The number of concurrent pulls for three pods while the runtime completes none. */
export async function countConcurrentPulls(agent: TestAgent, expected: number): Promise<number> {
  await agent.start();
  const release = agent.fake.hold("pullImage");
  for (const name of ["a", "b", "c"]) {
    agent.fake.pullable.set(`${name}:1`, { id: name });
    agent.createPod(name, { containers: [{ name, image: `${name}:1`, imagePullPolicy: "Always" }] });
  }
  const started = () => agent.fake.calls.filter(({ method }) => method === "pullImage").length;
  // The agent reads files meanwhile, which takes real time; the clock of the limits advances only a little.
  const isReached = () => agent.fake.sandboxes.size === 3 && started() >= expected;
  for (let attempt = 0; !isReached() && attempt < 1000; attempt++) await advanceClock(agent, 1);
  // Time for a pull beyond the limit.
  for (let attempt = 0; attempt < 20; attempt++) await advanceClock(agent, 0);
  const count = started();
  release();
  return count;
}

/** The output by stream of a logger that the flags configure, and its pending timers. */
export function captureLog(agent: TestAgent) {
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

export const alphaLogging = { "feature-gates": "LoggingAlphaOptions=true" };

/** Starts four pods, and expects one event a second after the first `burst`. */
export async function expectEventLimit(t: Test, agent: TestAgent, burst: number): Promise<void> {
  const began = agent.clock.monotonic();
  await agent.start();
  for (let pod = 0; pod < 4; pod++) agent.createPod(`web${pod}`);
  for (let pod = 0; pod < 4; pod++) await agent.untilRunning(`web${pod}`);
  const recorded = agent.api.listBelow("/api/v1/namespaces/default/events").length;
  const seconds = (agent.clock.monotonic() - began) / 1000;
  t.ok(recorded <= burst + seconds + 1, `${recorded} events in ${seconds} s`);
}

/** Makes a container's log exceed its size a number of times; returns a function that counts its files. */
export async function rotateLog(agent: TestAgent, times: number): Promise<() => number> {
  await agent.start();
  const created = agent.createPod("web");
  await agent.untilRunning("web");
  const directory = join(agent.config.podLogsDir, `default_web_${created.metadata?.uid}`, "c");
  mkdirSync(directory, { recursive: true });
  const rotations = () => agent.fake.calls.filter(({ method }) => method === "reopenContainerLog").length;
  for (let time = 0; time < times; time++) {
    writeFileSync(join(directory, "0.log"), "x".repeat(4096));
    await agent.until("the log is rotated", () => rotations() > time);
  }
  return () => readdirSync(directory).length;
}

export const staticPodJson = JSON.stringify({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web" },
  spec: { containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent" }] },
});

export const staticPath = join(files, "static");

mkdirSync(staticPath);

writeFileSync(join(staticPath, "web.json"), staticPodJson);

/** The headers of the requests for the manifest. */
export const manifestRequests: IncomingHttpHeaders[] = [];

export const manifestServer = createHttpServer((request, response) => {
  manifestRequests.push(request.headers);
  response.end(staticPodJson);
});

export const manifestUrl = `http://127.0.0.1:${await listenOn(manifestServer, 0, "127.0.0.1")}/pods`;

t.teardown(() => manifestServer.close());

/** Waits until a file of a control group has this content. */
export async function expectCgroupFile(t: Test, agent: TestAgent, path: string, text: string): Promise<void> {
  await agent.until(`${path} to be ${text}`, () => agent.readCgroup(path) === text);
  t.pass(path);
}

/** Credential provider plugins that respond with their own name as username. */
export const binDir = join(files, "plugins");

mkdirSync(binDir);

for (const [name, mode] of [
  ["plug", 0o755],
  ["plain", 0o644],
] as const) {
  const auth = { "r.test": { username: name, password: "x" } };
  const kind = "CredentialProviderResponse";
  const response = { apiVersion: "credentialprovider.svclet.svc.io/v1", kind, cacheKeyType: "Image", auth };
  writeFileSync(join(binDir, name), `#!/bin/sh\nread -r request; echo '${JSON.stringify(response)}'\n`, { mode });
}

export const providerConfig = (name: string): string => {
  const apiVersion = "credentialprovider.svclet.svc.io/v1";
  const provider = { name, matchImages: ["*.test"], defaultCacheDuration: "1m", apiVersion };
  const path = join(files, `${name}.json`);
  const kind = "CredentialProviderConfig";
  writeFileSync(path, JSON.stringify({ apiVersion: "svclet.config.svc.io/v1", kind, providers: [provider] }));
  return path;
};

/** Starts the agent and expects a connection to the endpoint. */
export async function expectConnection(t: Test, agent: TestAgent, endpoint: string): Promise<void> {
  let connections = 0;
  const runtime = createServer((socket) => {
    socket.on("error", () => {}).destroy();
    connections++;
  });
  const other = agent.config.runtime.endpoint;
  await listenOn(runtime, endpoint.slice("unix://".length));
  const { transport } = agent.api;
  const running = await startAgent(agent.config, { clock: agent.clock, log: silentLogger, iptables, transport });
  running.ready().catch(() => {});
  try {
    await agent.until("a connection", () => connections > 0);
    t.pass(`connection to ${endpoint}${other === endpoint ? "" : ", which is not the runtime endpoint"}`);
  } finally {
    runtime.close();
    let closed = false;
    void running.close().finally(() => {
      closed = true;
    });
    await agent.until("the agent has stopped", () => closed);
  }
}

/** Expects at most `burst` requests for ConfigMaps before the clock advances, then one a second. */
export async function expectRequestLimit(t: Test, agent: TestAgent, burst: number): Promise<void> {
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
    agent.createPod(`p${pod}`, { volumes: [{ name: "v", configMap: { name: `m${pod}`, optional: true } }] });
  }
  const began = agent.clock.monotonic();
  for (let attempt = 0; attempt < 100; attempt++) await agent.clock.advance(0);
  const atOnce = seen.length;
  t.ok(atOnce <= burst, `${atOnce} requests at once`);
  await agent.until("the other requests", () => seen.length >= 8);
  t.ok(agent.clock.monotonic() - began >= (8 - burst) * 1000, "a request a second");
}
