/** A server with a worker thread, over TLS. Connections are many, so that both threads have some. */
import { readdirSync, readFileSync } from "node:fs";
import { type ClientHttp2Session, connect } from "node:http2";
import type { Worker } from "node:worker_threads";
import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { fileDirectory } from "../../testing/std/file-directory.ts";
import { freePort } from "../../testing/std/free-port.ts";
import { until } from "../../testing/std/until.ts";
import { defaultConfig } from "../config/default-config.ts";
import { startApiServer } from "../server.ts";

t.setTimeout(120_000);

const CONNECTIONS = 16;
const MAPS = "/api/v1/namespaces/default/configmaps";

const files = fileDirectory(t, { tokens: 'secret,admin,1,"system:masters"\n' });
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

t.test("tunnels of agents are refused, since requests to an agent arrive in all threads", async (t) => {
  const session = open();
  const { status, json } = await send(session, "GET /api/v1/nodes/n1/tunnel");
  t.equal(status, 503);
  t.match(json.message, "need an API server with --workers=1");
  session.destroy();
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
