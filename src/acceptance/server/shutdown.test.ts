/** The shutdown of a real process: signals, phases, and what clients receive. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type ClientHttp2Session, connect } from "node:http2";
import { join } from "node:path";
import t, { type Test } from "tap";
import { freePort } from "../../testing/std/free-port.ts";
import { until } from "../../testing/std/until.ts";

const MAIN = new URL("../../main.ts", import.meta.url).pathname;

t.setTimeout(120_000);

interface Running {
  readonly child: ChildProcess;
  readonly port: number;
  log(): string;
  /** Resolves with the exit code. */
  readonly exited: Promise<number | null>;
}

async function start(t: Test, ...flags: readonly string[]): Promise<Running> {
  const port = await freePort();
  const directory = t.testdir();
  writeFileSync(join(directory, "tokens"), "sesame,ali,1,system:masters\n");
  const own = ["--bind-address=127.0.0.1", `--secure-port=${port}`, `--cert-dir=${directory}`];
  const argv = ["apiserver", "--kvstore-servers=memory://", `--token-auth-file=${join(directory, "tokens")}`, ...own];
  const child = spawn(process.execPath, [MAIN, ...argv, ...flags], { stdio: ["ignore", "ignore", "pipe"] });
  t.teardown(() => child.kill("SIGKILL"));
  let log = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const exited = once(child, "exit").then(([code]) => code as number | null);
  await until(
    () => `the server serves; its log:\n${log}`,
    () => log.includes("Serving securely"),
  );
  return { child, port, log: () => log, exited };
}

async function untilLogged(server: Running, text: string): Promise<void> {
  await until(
    () => `${JSON.stringify(text)} is logged; the log:\n${server.log()}`,
    () => server.log().includes(text),
  );
}

function session(t: Test, { port }: Running): ClientHttp2Session {
  const client = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
  client.on("error", () => {});
  t.teardown(() => client.destroy());
  return client;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly ended: Promise<unknown>;
}

/** Uses a new connection by default, as the probe of a load balancer. */
async function get(t: Test, server: Running, path: string, client = session(t, server)): Promise<Answer> {
  const stream = client.request({ ":path": path, authorization: "Bearer sesame" });
  stream.on("error", () => {});
  const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
  const ended = once(stream.resume(), "end");
  return { status: Number(headers[":status"]), headers, ended };
}

t.test(
  "svc apiserver is not ready but serves during the shutdown delay, then ends watches and exits with 0",
  async (t) => {
    const server = await start(t, "--shutdown-delay-duration=700ms");
    const watch = await get(t, server, "/api/v1/pods?watch=1");
    t.equal((await get(t, server, "/readyz")).status, 200);
    server.child.kill("SIGTERM");
    await untilLogged(server, "not ready, still serving");
    t.equal((await get(t, server, "/readyz")).status, 500, "/readyz fails at once");
    for (const path of ["/livez", "/healthz", "/api/v1/pods"]) t.equal((await get(t, server, path)).status, 200, path);
    let over = false;
    void watch.ended.then(() => {
      over = true;
    });
    t.equal(over, false, "watches go on");
    await watch.ended;
    t.equal(await server.exited, 0);
    await t.rejects(get(t, server, "/livez"), "the port is closed");
  },
);

t.test("svc apiserver responds 429 to new requests while watches end one after the other", async (t) => {
  const server = await start(
    t,
    "--shutdown-send-retry-after",
    "--shutdown-watch-termination-grace-period=2s",
    "--max-requests-inflight=10",
  );
  const watchers = session(t, server);
  const watches = [];
  for (let count = 0; count < 60; count++) watches.push(await get(t, server, "/api/v1/pods?watch=1", watchers));
  server.child.kill("SIGTERM");
  await untilLogged(server, "rejecting new requests with 429");
  const refused = await get(t, server, "/api/v1/pods");
  t.match(refused, { status: 429, headers: { "retry-after": "5" } });
  t.equal((await get(t, server, "/livez")).status, 200);
  await Promise.all(watches.map(({ ended }) => ended));
  t.equal(await server.exited, 0);
});

/** Requests that each take a large part of a second to compute. */
const COSTLY_ITEMS = 48_000;

t.test("svc apiserver exits in time while large requests are computed", async (t) => {
  const server = await start(t);
  const finalizers = Array.from({ length: COSTLY_ITEMS }, (_, index) => `example.com/${index}`);
  const data = Object.fromEntries(finalizers.map((_, index) => [`k${index}`, ""]));
  // Twice as many as a body may have: refused.
  const refused = JSON.stringify({ metadata: { name: "c", finalizers: [...finalizers, ...finalizers] } });
  const bodies = [{ metadata: { name: "a", finalizers } }, { metadata: { name: "b" }, data }].map((body) =>
    JSON.stringify(body),
  );
  const statuses: Record<string, number> = {};
  const flood = async (body: string): Promise<void> => {
    const client = session(t, server);
    while (!client.closed && !client.destroyed) {
      const path = "/api/v1/namespaces/default/configmaps?dryRun=All";
      const headers = { ":method": "POST", ":path": path, authorization: "Bearer sesame" };
      const stream = client.request({ ...headers, "content-type": "application/json" });
      stream.on("response", ({ ":status": status = 0 }) => {
        statuses[status] = (statuses[status] ?? 0) + 1;
      });
      stream.resume().end(body);
      if ((await once(stream, "close").catch(() => undefined)) === undefined) return;
    }
  };
  const clients = [...bodies, refused, ...bodies, refused].map(flood);
  await until("requests are computed", () => (statuses[201] ?? 0) > 0 && (statuses[413] ?? 0) > 0);
  const began = performance.now();
  server.child.kill("SIGTERM");
  t.equal(await server.exited, 0);
  const seconds = (performance.now() - began) / 1000;
  t.ok(seconds < 30, `${seconds.toFixed(1)} s, ${JSON.stringify(statuses)}`);
  await Promise.all(clients);
});

t.test("svc apiserver exits at once after a second signal", async (t) => {
  const server = await start(t, "--shutdown-delay-duration=1h");
  server.child.kill("SIGTERM");
  await untilLogged(server, "Shutting down");
  server.child.kill("SIGINT");
  t.equal(await server.exited, 130);
});
