/**
 * The requests that cost the most, sent to a real server with a small heap: how long other clients wait, and how much
 * memory each takes at its peak. `SVC_ATTACKS=all` (`make attacks`) sends all and prints a table; otherwise some.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { freePort } from "../../testing/std/free-port.ts";
import { LoggedProcess } from "../../testing/std/logged-process.ts";
import { until } from "../../testing/std/until.ts";
import { type HostileRequest, hostileRequests } from "./hostile-requests.ts";

/** `SVC_MAIN=dist/svc`, for example: a bundle. */
const MAIN = resolve(process.env.SVC_MAIN ?? new URL("../../main.ts", import.meta.url).pathname);
const all = process.env.SVC_ATTACKS === "all";
const HEAP_MIB = 256;
/** Several times what is measured on an idle machine: a quadratic algorithm takes ten times this. */
const STALL_MS_MAX = 800;
/** Several times what is measured. The peak includes garbage of the young generation, which takes up to 48 MiB. */
const PEAK_MIB_MAX = 150;
/** Above the memory of a server that has compiled its code and filled its young generation. */
const KEPT_MIB_MAX = HEAP_MIB + 100;
/** Without the store, whose disk other processes may keep busy. */
const LIVEZ = "GET /livez?exclude=etcd";
const SAMPLE_EVERY_MS = 10;
const STRIDE = 5;

interface Server extends AsyncDisposable {
  readonly log: () => string;
  readonly rssMiB: () => number;
  /** The largest resident memory since the last call. */
  readonly peakMiB: () => number;
  /** CPU time of the thread that runs the event loop. */
  readonly busyMs: () => number;
  send(sent: HostileRequest, token: string, agent?: Agent): Promise<{ readonly status: number; readonly text: string }>;
}

async function start(t: Test): Promise<Server> {
  const directory = t.testdir();
  const port = await freePort();
  writeFileSync(join(directory, "tokens"), "admin,admin,1,system:masters\nowner,owner,2\n");
  const flags = [
    `--kvstore-servers=level://${directory}/store`,
    `--cert-dir=${directory}/pki`,
    `--token-auth-file=${directory}/tokens`,
    "--bind-address=127.0.0.1",
    `--secure-port=${port}`,
    "--authorization-mode=RBAC",
    // Else the request may compute in a thread that neither the probe nor `busyMs` meets.
    "--workers=1",
    "--disable-admission-plugins=ServiceAccount",
  ];
  const command = [process.execPath, `--max-old-space-size=${HEAP_MIB}`, MAIN, "apiserver", ...flags];
  const child = new LoggedProcess(command, { logFile: join(directory, "log") });
  await until(
    () => `the server serves; its log:\n${child.log}`,
    () => child.log.includes("Serving securely"),
  );
  const shared = new Agent({ keepAlive: true, rejectUnauthorized: false });
  const memoryMiB = (field: string) =>
    Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024;
  const rssMiB = () => memoryMiB("VmRSS");
  const peakMiB = () => {
    const peak = memoryMiB("VmHWM");
    // Sets the peak to the present memory.
    writeFileSync(`/proc/${child.pid}/clear_refs`, "5");
    return peak;
  };
  const busyMs = () =>
    Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  const send: Server["send"] = ({ line, body, type = "application/json", accept = "application/json" }, token, agent) =>
    new Promise((resolve, reject) => {
      const [method, path] = line.split(" ");
      const headers = { authorization: `Bearer ${token}`, "content-type": type, accept };
      const options = { host: "127.0.0.1", port, path, method, headers, agent: agent ?? shared };
      const sent = request(options, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          if (text.length < 10_000) text += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
        response.on("error", reject);
      });
      // A body may be refused before it is sent.
      sent.on("error", (error) => (body === undefined ? reject(error) : resolve({ status: 413, text: error.message })));
      sent.end(body);
    });
  const dispose = async (): Promise<void> => {
    shared.destroy();
    await child[Symbol.asyncDispose]();
  };
  return { log: () => child.log, rssMiB, peakMiB, busyMs, send, [Symbol.asyncDispose]: dispose };
}

/**
 * Samples /livez on a connection of its own while `work` runs. Resolves with the longest response time, in CPU time of
 * the server's event loop: other processes of the machine do not count.
 */
async function longestWait(server: Server, probe: Agent, work: () => Promise<void>): Promise<number> {
  let longest = 0;
  let over = false;
  const sample = async (): Promise<void> => {
    while (!over) {
      const began = server.busyMs();
      const { status } = await server.send({ what: "", line: LIVEZ }, "admin", probe);
      if (status !== 200) throw new Error(`/livez is answered with ${status}:\n${server.log().slice(-5000)}`);
      longest = Math.max(longest, server.busyMs() - began);
      await sleep(SAMPLE_EVERY_MS);
    }
  };
  const sampling = sample();
  await sleep(SAMPLE_EVERY_MS);
  try {
    await work();
  } finally {
    // What the request leaves to the caches is a part of it.
    await sleep(5 * SAMPLE_EVERY_MS);
    over = true;
    await sampling;
  }
  return longest;
}

t.setTimeout(1_800_000);

t.test("no request stops a server with a small heap", async (t) => {
  await using server = await start(t);
  const probe = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  t.teardown(() => probe.destroy());
  const post = async (path: string, body: object) => {
    const answer = await server.send({ what: "", line: `POST ${path}`, body: JSON.stringify(body) }, "admin");
    t.equal(answer.status, 201, `${path}: ${answer.text.slice(0, 300)}`);
    return JSON.parse(answer.text);
  };
  const accounts = "/api/v1/namespaces/default/serviceaccounts";
  await post(accounts, { metadata: { name: "unbound" } });
  const unbound = (await post(`${accounts}/unbound/token`, { spec: {} })).status.token as string;
  const apiGroup = "rbac.authorization.k8s.io";
  await post(`/apis/${apiGroup}/v1/namespaces/default/rolebindings`, {
    metadata: { name: "owner" },
    roleRef: { apiGroup, kind: "ClusterRole", name: "admin" },
    subjects: [{ apiGroup, kind: "User", name: "owner" }],
  });
  await longestWait(server, probe, async () => await sleep(500));
  // The first large request fills the young generation and has its code compiled.
  const [warmUp] = hostileRequests();
  for (let run = 0; run < 3; run++) await server.send({ ...warmUp!, line: `${warmUp!.line}?dryRun=All` }, "admin");
  const requests = hostileRequests();
  const chosen = all ? requests : requests.filter((_, index) => index % STRIDE === 0);
  const first = server.rssMiB();
  const rows: string[] = [];
  for (const sent of chosen) {
    const { served } = sent;
    if (served !== undefined && chosen === requests) {
      const isServed = async () => (await server.send({ what: "", line: `GET ${served}` }, "admin")).status === 200;
      await until(() => `${served} is served`, isServed);
    }
    const users = [
      ["with rights", "admin"],
      ["without", unbound],
    ];
    if (sent.byNamespaceAdmin === true) users.unshift(["administrator of the namespace", "owner"]);
    for (const [user = "", token = ""] of users) {
      server.peakMiB();
      const before = server.rssMiB();
      let status = 0;
      const ms = await longestWait(server, probe, async () => {
        ({ status } = await server.send(sent, token));
      });
      const grown = server.peakMiB() - before;
      t.ok(grown < PEAK_MIB_MAX, `${sent.what}, ${user}: ${Math.round(grown)} MiB`);
      t.ok(ms < STALL_MS_MAX, `${sent.what}, ${user}: ${Math.round(ms)} ms`);
      t.ok(status > 0 && status < 500, `${sent.what}, ${user}: ${status}`);
      rows.push(`| ${sent.what} | ${user} | ${status} | ${Math.round(ms)} | ${Math.round(grown)} |`);
    }
  }
  const kept = server.rssMiB() - first;
  t.ok(kept < KEPT_MIB_MAX, `${Math.round(kept)} MiB of memory are kept`);
  if (!all) return;
  rows.push(`| all of these | | | | ${Math.round(kept)} kept |`);
  const head = "| request | user | status | longest stall, ms | peak memory, MiB |\n|---|---|---|---|---|";
  console.error(`${head}\n${rows.join("\n")}`);
});
