/** A server with a worker thread, over TLS. Connections are many, so that both threads have some. */
import { readdirSync, readFileSync } from "node:fs";
import { type ClientHttp2Session, connect } from "node:http2";
import { createServer, request } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Worker } from "node:worker_threads";
import t, { type Test } from "tap";
import { TUNNEL_CONDITION, tunnelPath } from "../../api/core/node/tunnel.ts";
import { openTunnelServer, TUNNEL_PROTOCOL } from "../../http/tunnel/tunnel-session.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { fileDirectory } from "../../testing/std/file-directory.ts";
import { freePort } from "../../testing/std/free-port.ts";
import { until } from "../../testing/std/until.ts";
import { defaultConfig } from "../config/default-config.ts";
import { startApiServer } from "../server.ts";

t.setTimeout(120_000);

const CONNECTIONS = 16;
const MAPS = "/api/v1/namespaces/default/configmaps";

const tokens = 'secret,admin,1,"system:masters"\nagent,system:node:n1,2,"system:nodes,system:masters"\n';
const files = fileDirectory(t, { tokens });
const securePort = await freePort();
const workers: Worker[] = [];
process.on("worker", (worker) => workers.push(worker));
const server = await startApiServer(
  {
    ...defaultConfig,
    securePort,
    workers: 2,
    serving: { ...defaultConfig.serving, certDir: `${files}/pki` },
    authentication: { ...defaultConfig.authentication, tokenFile: `${files}/tokens` },
    authorizationModes: ["RBAC"],
  },
  { clock: systemClock, log: silentLogger },
);

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: responses of all kinds
  readonly json: any;
}

function open(): ClientHttp2Session {
  const session = connect(`https://127.0.0.1:${securePort}`, { rejectUnauthorized: false });
  session.on("error", () => {});
  return session;
}

function send(
  session: ClientHttp2Session,
  line: string,
  body?: object,
  onData?: (text: string) => void,
): Promise<Answer> {
  const [method = "GET", path = "/"] = line.split(" ");
  const headers = { authorization: "Bearer secret", "content-type": "application/json" };
  const stream = session.request({ ":method": method, ":path": path, ...headers }, { endStream: body === undefined });
  if (body !== undefined) stream.end(JSON.stringify(body));
  return new Promise((resolve, reject) => {
    let status = 0;
    let text = "";
    stream.setEncoding("utf8");
    stream.on("response", (response) => {
      status = response[":status"] ?? 0;
    });
    stream.on("data", (chunk: string) => {
      text += chunk;
      onData?.(chunk);
    });
    stream.on("error", reject);
    stream.on("close", () => {
      if (status === 0) reject(new Error("the connection was closed"));
      else resolve({ status, json: text.startsWith("{") && onData === undefined ? JSON.parse(text) : text });
    });
  });
}

const configMap = (name: string, n: number) => ({ metadata: { name }, data: { n: String(n) } });

t.test("a write through one connection is seen at once through all others", async (t) => {
  const sessions = Array.from({ length: CONNECTIONS }, open);
  const first = await send(sessions[0]!, `POST ${MAPS}`, configMap("seen", 0));
  t.equal(first.status, 201);
  for (let n = 1; n <= 2 * CONNECTIONS; n++) {
    const { status } = await send(sessions[n % CONNECTIONS]!, `PUT ${MAPS}/seen`, configMap("seen", n));
    t.equal(status, 200);
    const reads = await Promise.all(sessions.map((session) => send(session, `GET ${MAPS}/seen`)));
    t.same(new Set(reads.map(({ json }) => json.data.n)), new Set([String(n)]));
  }
  for (const session of sessions) session.destroy();
});

t.test("watches through all connections deliver each change once, in order", async (t) => {
  const sessions = Array.from({ length: CONNECTIONS }, open);
  const { json } = await send(sessions[0]!, `GET ${MAPS}`);
  const seen = sessions.map(() => "");
  for (const [index, session] of sessions.entries()) {
    const path = `${MAPS}?watch=true&resourceVersion=${json.metadata.resourceVersion}`;
    void send(session, `GET ${path}`, undefined, (text) => {
      seen[index] += text;
    }).catch(() => {});
  }
  const creations = Array.from({ length: 100 }, (_, n) =>
    send(sessions[n % CONNECTIONS]!, `POST ${MAPS}`, configMap(`watched-${n}`, n)),
  );
  t.same(new Set((await Promise.all(creations)).map(({ status }) => status)), new Set([201]));
  const revisions = (text: string): number[] =>
    [...text.matchAll(/"type":"ADDED".*?"resourceVersion":"(\d+)"/g)].map((match) => Number(match[1]));
  await until("all events", () => seen.every((text) => revisions(text).length === 100));
  const expected = revisions(seen[0]!);
  t.same(
    expected,
    expected.toSorted((a, b) => a - b),
  );
  for (const text of seen) t.same(revisions(text), expected);
  for (const session of sessions) session.destroy();
});

t.test("/metrics has the sum of all threads through each connection", async (t) => {
  const sessions = Array.from({ length: CONNECTIONS }, open);
  await Promise.all(sessions.map((session) => send(session, "GET /api/v1/namespaces/kube-public/secrets/none")));
  const counts = await Promise.all(sessions.map(async (session) => String((await send(session, "GET /metrics")).json)));
  for (const page of counts) {
    const requests = /^apiserver_request_total\{.*code="404".*resource="secrets".*\} (\d+)$/m.exec(page)?.[1];
    t.equal(requests, String(CONNECTIONS));
    t.match(page, /^process_start_time_seconds \d/m);
  }
  for (const session of sessions) session.destroy();
});

t.test("/metrics has the last figures of a worker that does not answer", async (t) => {
  const worker = workers[0]!;
  const post = worker.postMessage.bind(worker);
  const held: unknown[] = [];
  worker.postMessage = (message: { readonly type: string }, transferred) => {
    if (message.type === "collect") held.push(message);
    else post(message, transferred as []);
  };
  const sessions = Array.from({ length: CONNECTIONS }, open);
  const began = performance.now();
  const pages = await Promise.all(sessions.map(async (session) => String((await send(session, "GET /metrics")).json)));
  t.ok(performance.now() - began < 10_000);
  for (const page of pages) {
    const requests = /^apiserver_request_total\{.*code="404".*resource="secrets".*\} (\d+)$/m.exec(page)?.[1];
    t.equal(requests, String(CONNECTIONS));
  }
  worker.postMessage = post;
  for (const message of held) post(message);
  for (const session of sessions) session.destroy();
});

const LARGE_BYTES = 4 * 2 ** 20;

/** An agent's server, which answers with the request's path. */
async function startAgentServer(t: Test): Promise<number> {
  const { server: serving } = await makeServerCertificate();
  const agent = createServer({ cert: serving.cert, key: serving.key }, ({ url }, response) => {
    response.end(url === "/large" ? Buffer.alloc(LARGE_BYTES, "x") : `path ${url}`);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => agent.once("listening", resolve));
  t.teardown(() => agent.closeAllConnections());
  t.teardown(() => agent.close());
  return (agent.address() as AddressInfo).port;
}

/** Opens the tunnel of the node n1 in one of the threads. */
function openTunnel(t: Test, port: number): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const headers = { authorization: "Bearer agent", connection: "Upgrade", upgrade: TUNNEL_PROTOCOL };
  const path = tunnelPath("n1");
  const outgoing = request({ host: "127.0.0.1", port: securePort, path, headers, rejectUnauthorized: false });
  outgoing.on("error", reject);
  outgoing.on("response", ({ statusCode }) => reject(new Error(`status ${statusCode}`)));
  outgoing.on("upgrade", (_, socket: Socket, head) => {
    if (head.length > 0) socket.unshift(head);
    socket.on("error", () => undefined);
    t.teardown(() => socket.destroy());
    openTunnelServer(socket, { target: { host: "127.0.0.1", port }, countStreams: () => undefined });
    resolve(socket);
  });
  outgoing.end();
  return promise;
}

t.test("requests through all connections reach an agent by its tunnel, which ends in one thread", async (t) => {
  const port = await startAgentServer(t);
  const sessions = Array.from({ length: CONNECTIONS }, open);
  const addresses = [{ type: "InternalIP", address: "192.0.2.7" }];
  const conditions = [{ type: TUNNEL_CONDITION, status: "True", reason: "TunnelOpen" }];
  const node = { metadata: { name: "n1" }, status: { addresses, conditions } };
  t.equal((await send(sessions[0]!, "POST /api/v1/nodes", node)).status, 201);
  const readAll = (path: string) =>
    Promise.all(sessions.map((session) => send(session, `GET /api/v1/nodes/n1/proxy/${path}`)));
  const before = await readAll("none");
  t.same(new Set(before.map(({ status }) => status)), new Set([503]));
  t.match(before[0]!.json.message, "no tunnel from node n1 is open; this server has had none");
  let tunnel: Socket | undefined;
  // The last one replaces those before it, of whatever thread they are.
  for (let count = 0; count < 6; count++) {
    tunnel = await openTunnel(t, port);
    await until(`all threads use tunnel ${count}`, async () => {
      const answers = await readAll(`${count}`);
      return answers.every(({ status, json }) => status === 200 && json === `path /${count}`);
    });
  }
  for (const { json } of await readAll("large")) t.equal(json.length, LARGE_BYTES);
  const readOpen = async (): Promise<string | undefined> =>
    /^apiserver_agent_tunnels (\d+)$/m.exec(String((await send(sessions[1]!, "GET /metrics")).json))?.[1];
  await until("there is one tunnel", async () => (await readOpen()) === "1");
  tunnel?.destroy();
  await until("all threads see the end of the tunnel", async () => {
    const answers = await readAll("none");
    return answers.every(({ json }) => /no tunnel from node n1 is open; last closed at /.test(json.message));
  });
  for (const session of sessions) session.destroy();
});

t.test("there is one thread for each worker but the main thread", async (t) => {
  const threads = readdirSync("/proc/self/task").map((id) => readFileSync(`/proc/self/task/${id}/comm`, "utf8").trim());
  t.same(
    threads.filter((name) => name.startsWith("svc-worker")),
    ["svc-worker-1"],
  );
});

t.test("a worker that ends is replaced", async (t) => {
  t.equal(workers.length, 1);
  await workers[0]!.terminate();
  // The main thread serves meanwhile.
  const session = open();
  t.equal((await send(session, "GET /readyz")).status, 200);
  await until("another worker", () => workers.length === 2);
  const listening = new Promise((resolve) => {
    workers[1]!.on("message", (message) => message.step === "serving" && resolve(undefined));
  });
  await listening;
  const sessions = Array.from({ length: CONNECTIONS }, open);
  const reads = await Promise.all(sessions.map((each) => send(each, `GET ${MAPS}/seen`)));
  t.same(new Set(reads.map(({ status }) => status)), new Set([200]));
  for (const each of [session, ...sessions]) each.destroy();
});

t.test("another server cannot use the port", async (t) => {
  const config = {
    ...defaultConfig,
    securePort,
    workers: 2,
    serving: { ...defaultConfig.serving, certDir: `${files}/pki` },
  };
  await t.rejects(startApiServer(config, { clock: systemClock, log: silentLogger }), /another port with --secure-port/);
});

t.test("a stop ends requests of all threads gracefully", async (t) => {
  const sessions = Array.from({ length: CONNECTIONS }, open);
  const watches = sessions.map((session) => send(session, `GET ${MAPS}?watch=true`, undefined, () => {}));
  await Promise.all(sessions.map((session) => send(session, `GET ${MAPS}/seen`)));
  const ended = workers[1]!;
  const exit = new Promise((resolve) => {
    ended.on("exit", resolve);
  });
  await server.close();
  t.equal(await exit, 0);
  for (const { status } of await Promise.all(watches)) t.equal(status, 200);
  for (const session of sessions) session.destroy();
});
