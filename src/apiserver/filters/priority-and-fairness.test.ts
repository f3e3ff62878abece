import t from "tap";
import type { HttpResponse } from "../../http/message.ts";
import { makeRequest } from "../../http/request.ts";
import { readLines, startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";

const FLOW_CONTROL = "/apis/flowcontrol.apiserver.k8s.io/v1";
const SCHEMA = "x-kubernetes-pf-flowschema-uid";
const LEVEL = "x-kubernetes-pf-prioritylevel-uid";
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";

/** A server on which the user `jo` has a level with one seat and a queue. */
async function startWithOneSeat(more: object = {}): Promise<TestServer> {
  const server = await startTestServer({ authorizationModes: ["AlwaysAllow"] });
  const queuing = { queues: 1, handSize: 1, queueLengthLimit: 2 };
  const limits = { nominalConcurrencyShares: 1, borrowingLimitPercent: 0 };
  const limited = { ...limits, limitResponse: { type: "Queue", queuing }, ...more };
  const level = { metadata: { name: "mine" }, spec: { type: "Limited", limited } };
  const everything = {
    resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"] }],
    nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
  };
  const rules = [{ subjects: [{ kind: "User", user: { name: "jo" } }], ...everything }];
  const spec = { priorityLevelConfiguration: { name: "mine" }, matchingPrecedence: 1000, rules };
  await server.send(`POST ${FLOW_CONTROL}/prioritylevelconfigurations`, { body: level });
  await server.send(`POST ${FLOW_CONTROL}/flowschemas`, { body: { metadata: { name: "mine" }, spec } });
  // 1 of 246 shares would be 3 seats.
  const { items } = (await server.send(`GET ${FLOW_CONTROL}/prioritylevelconfigurations`)).json;
  for (const { metadata } of items) {
    if (metadata.name === "workload-low") {
      const change = { spec: { limited: { nominalConcurrencyShares: 1000 } } };
      const headers = { "content-type": "application/merge-patch+json" };
      await server.send(`PATCH ${FLOW_CONTROL}/prioritylevelconfigurations/workload-low`, { body: change, headers });
    }
  }
  await server.clock.advance(100);
  return server;
}

async function levelRow(server: TestServer): Promise<readonly string[]> {
  const { text } = await server.send("GET /debug/api_priority_and_fairness/dump_priority_levels");
  const row = text.split("\n").find((line) => line.startsWith("mine,")) ?? "";
  return row.split(/, */);
}

async function waitingAndExecuting(server: TestServer): Promise<readonly number[]> {
  const [, , , , waiting, executing] = await levelRow(server);
  return [Number(waiting), Number(executing)];
}

async function* linesOf({ body }: HttpResponse): AsyncGenerator<string> {
  for await (const chunk of body as AsyncIterable<Uint8Array>) yield Buffer.from(chunk).toString();
}

t.test("responses of every status name their flow schema and priority level", async (t) => {
  await using server = await startTestServer();
  const uidOf = async (path: string): Promise<string> =>
    (await server.send(`GET ${FLOW_CONTROL}/${path}`)).json.metadata.uid;
  const [schema, level] = [await uidOf("flowschemas/exempt"), await uidOf("prioritylevelconfigurations/exempt")];
  for (const line of [
    "GET /version",
    "GET /none",
    "GET /api/v1/namespaces/x",
    `POST ${CONFIG_MAPS}`,
    "GET /api/v1/nodes?watch=1&timeoutSeconds=-1",
  ]) {
    t.match((await server.open(line)).headers, { [SCHEMA]: schema, [LEVEL]: level }, line);
  }
  for (const line of ["GET /api/v1/namespaces/default/pods/p/log", "GET /api/v1/namespaces/default/pods/p/exec"]) {
    t.equal((await server.send(line)).headers[SCHEMA], undefined, `${line} is long-running`);
  }
  const unauthorized = await server.send("GET /version", { user: "", headers: { authorization: "Bearer x" } });
  t.equal(unauthorized.status, 401);
  t.equal(unauthorized.headers[SCHEMA], undefined);
});

t.test("a watch occupies its seat until its initial events are read", async (t) => {
  await using server = await startWithOneSeat();
  for (const name of ["a", "b"]) await server.send(`POST ${CONFIG_MAPS}`, { body: { metadata: { name } } });
  const watch = await server.open(`GET ${CONFIG_MAPS}?watch=1`, { user: "jo" });
  const got = server.send("GET /version", { user: "jo" });
  t.same(await waitingAndExecuting(server), [1, 1]);
  const lines = linesOf(watch);
  for (let index = 0; index < 3; index++) {
    t.same(await waitingAndExecuting(server), [1, 1], `${index} events`);
    void lines.next();
    await server.clock.advance(0);
  }
  t.match(await got, { status: 200 });
  t.same(await waitingAndExecuting(server), [0, 0]);
  await server.clock.advance(4_000_000);
});

t.test("a watch that its client never reads releases its seat when the client disconnects", async (t) => {
  await using server = await startWithOneSeat();
  const leaving = new AbortController();
  await server.open(`GET ${CONFIG_MAPS}?watch=1`, { user: "jo", signal: leaving.signal });
  const got = server.send("GET /version", { user: "jo" });
  await server.clock.advance(10);
  leaving.abort();
  t.match(await got, { status: 200 });
});

t.test("a request waits a quarter of its time for a seat, a watch that of the default timeout", async (t) => {
  await using server = await startWithOneSeat();
  const leaving = new AbortController();
  await server.open(`GET ${CONFIG_MAPS}?watch=1`, { user: "jo", signal: leaving.signal });
  const ends = new Map<string, number>();
  const send = (line: string): void => {
    void server.send(line, { user: "jo" }).then(({ status }) => {
      if (status === 429) ends.set(line, server.clock.monotonic() - began);
    });
  };
  const began = server.clock.monotonic();
  send("GET /version?timeout=8s");
  send("GET /version?timeout=800s");
  t.match(await server.send("GET /version", { user: "jo" }), { status: 429, headers: { "retry-after": "1" } }, "full");
  await server.clock.advance(2000);
  t.same(Object.fromEntries(ends), { "GET /version?timeout=8s": 2000 });
  send(`GET ${CONFIG_MAPS}?watch=1&timeoutSeconds=1`);
  await server.clock.advance(13_000);
  t.equal(ends.get("GET /version?timeout=800s"), 15_000);
  await server.clock.advance(2000);
  t.equal(ends.get(`GET ${CONFIG_MAPS}?watch=1&timeoutSeconds=1`), 17_000);
  t.same((await levelRow(server)).slice(7), ["4", "3", "0"], "rejected, timed out, cancelled");
  leaving.abort();
});

t.test("a failed request releases its seat", async (t) => {
  await using server = await startWithOneSeat();
  for (const line of ["GET /none", `POST ${CONFIG_MAPS}`, `GET ${CONFIG_MAPS}?watch=1&resourceVersion=x`]) {
    t.ok((await server.send(line, { user: "jo" })).status >= 400);
    t.same(await waitingAndExecuting(server), [0, 0], line);
  }
});

t.test("a deleted flow schema has no effect any more, and a level is removed when it is idle", async (t) => {
  await using server = await startWithOneSeat();
  const uid = (await server.send("GET /version", { user: "jo" })).headers[SCHEMA];
  const { text } = await server.send(`GET ${FLOW_CONTROL}/flowschemas/mine`);
  t.ok(text.includes(String(uid)));
  await server.send(`DELETE ${FLOW_CONTROL}/flowschemas/mine`);
  await server.send(`DELETE ${FLOW_CONTROL}/prioritylevelconfigurations/mine`);
  await server.clock.advance(100);
  t.not((await server.send("GET /version", { user: "jo" })).headers[SCHEMA], uid);
  t.same(await levelRow(server), [""]);
});

t.test("a level without queues rejects requests when its seats are taken", async (t) => {
  await using server = await startWithOneSeat({ limitResponse: { type: "Reject" } });
  const leaving = new AbortController();
  const watch = await server.open(`GET ${CONFIG_MAPS}?watch=1`, { user: "jo", signal: leaving.signal });
  const { status, text, headers } = await server.send("GET /version", { user: "jo" });
  t.equal(status, 429);
  t.equal(text, "Too many requests, please try again later.\n");
  t.equal(headers["content-type"], "text/plain; charset=utf-8");
  t.equal((await server.send("GET /version")).status, 200, "administrators are exempt");
  void readLines(watch, 1).catch(() => {});
  await server.clock.advance(10);
  t.equal((await server.send("GET /version", { user: "jo" })).status, 200);
  leaving.abort();
});

t.test("a large response occupies its seat until it is written, at most for the default timeout", async (t) => {
  await using server = await startWithOneSeat();
  await server.send(`POST ${CONFIG_MAPS}`, { body: { metadata: { name: "a" }, data: { a: "x".repeat(70_000) } } });
  const token = server.parts.server.loopbackToken({ name: "jo", uid: "", groups: [], extra: {} });
  const list = async (): Promise<() => void> => {
    let written = (): void => {};
    const request = makeRequest({ path: CONFIG_MAPS, headers: { authorization: `Bearer ${token}` } });
    const whenWritten = (callback: () => void): void => {
      written = callback;
    };
    t.equal((await server.parts.server.handler({ ...request, whenWritten })).status, 200);
    return written;
  };
  const written = await list();
  t.same(await waitingAndExecuting(server), [0, 1]);
  written();
  t.same(await waitingAndExecuting(server), [0, 0]);
  await list();
  await server.clock.advance(59_999);
  t.same(await waitingAndExecuting(server), [0, 1]);
  await server.clock.advance(1);
  t.same(await waitingAndExecuting(server), [0, 0]);
  await server.send("GET /version", { user: "jo" });
  t.same(await waitingAndExecuting(server), [0, 0], "a small one does not");
});
