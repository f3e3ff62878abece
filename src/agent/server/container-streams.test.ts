import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { PassThrough } from "node:stream";
import t, { type Test } from "tap";
import type { Handler, HttpRequest, HttpResponse } from "../../http/message.ts";
import { makeRequest } from "../../http/request.ts";
import { listen } from "../../http/server/server.ts";
import { SpdyConnection } from "../../http/spdy/connection.ts";
import { pingFrame } from "../../http/spdy/frames.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { type Harness, podHarness, testPod } from "../../testing/agent/pod-harness.ts";
import { type PlayedStreamsOptions, playStreams } from "../../testing/http/played-streams.ts";
import { until } from "../../testing/std/until.ts";
import { RuntimeError } from "../runtime/runtime.ts";
import { createAgentHandler } from "./agent-handler.ts";

const spdy = { connection: "Upgrade", upgrade: "SPDY/3.1", "x-stream-protocol-version": "v4.channel.k8s.io" };
const websocket = { connection: "Upgrade", upgrade: "websocket" };

/** An agent with the pods `web` (running) and `done` (ended), and a played runtime. */
async function start(
  t: Test,
  played?: PlayedStreamsOptions,
  streamIdleMs = 0,
): Promise<Harness & { handler: Handler }> {
  const harness = await podHarness();
  t.teardown(() => harness[Symbol.asyncDispose]());
  harness.fake.programs.set("ended", { exitAfterMs: 100, exitCode: 0 });
  harness.manager.put(testPod("web"));
  harness.manager.put(testPod("done", { restartPolicy: "Never", containers: [{ name: "ended", image: "busybox:1" }] }));
  await harness.run(4);
  if (played !== undefined) {
    const handler = playStreams(played);
    const runtime = await listen({ handler, log: silentLogger, upgrades: true, host: "127.0.0.1" });
    t.teardown(() => runtime.close());
    harness.fake.streamingUrl = `http://127.0.0.1:${runtime.port}`;
  }
  const options = { pods: harness.manager, authenticate: undefined, problems: () => [], configz: {}, debugging: true };
  const handler = createAgentHandler({ ...options, clock: systemClock, streamIdleMs });
  return { ...harness, handler };
}

async function text({ body }: HttpResponse): Promise<string> {
  if (body instanceof Uint8Array) return Buffer.from(body).toString();
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

t.test("streams get kubelet's errors", async (t) => {
  const { handler, fake } = await start(t);
  const respond = async (line: string, headers: Readonly<Record<string, string>> = spdy): Promise<string> => {
    const [method = "", target = ""] = line.split(" ");
    const [path = "", query = ""] = target.split("?");
    const response = await handler({ ...makeRequest({ method, path, query, headers }), upgradable: true });
    return `${response.status} ${await text(response)}`;
  };
  const unreachable = "500 dial tcp 127.0.0.1:1: connect: connection refused\n";
  const cases: readonly (readonly [string, string, Readonly<Record<string, string>>?])[] = [
    ["POST /exec/default/web/c?command=a", "400 you must specify at least 1 of stdin, stdout, stderr"],
    ["POST /exec/default/web/c?command=a&output=true", "400 you must specify at least 1 of stdin, stdout, stderr"],
    ["POST /exec/default/web/c?tty=1&error=1", "400 you must specify at least 1 of stdin, stdout, stderr"],
    ["POST /exec/default/none/c?output=1", "404 pod does not exist"],
    ["POST /exec/default/web/x?output=1", '500 container not found ("x")'],
    ["POST /exec/default/done/ended?output=1", '500 container not found ("ended")'],
    ["POST /exec/default/web/other-uid/c?output=1", unreachable],
    ["POST /exec/default/web/c?output=1", "500 Upgrade request required\n", {}],
    ["PUT /exec/default/web/c?output=1", "405 405: Method Not Allowed"],
    ["GET /attach/default/web/x?output=1", "500 container x not found in pod web_default"],
    ["GET /attach/default/web/other-uid/c?output=1", "500 pod web_default not found"],
    ["GET /attach/default/web/uid-web/c?output=1", unreachable],
    ["POST /portForward/default/web", unreachable],
    ["POST /portForward/default/web/other-uid", "404 pod not found"],
    ["GET /portForward/default/web", '400 query parameter "port" is required', websocket],
    ["GET /portForward/default/web?port=", '400 query parameter "port" cannot be empty', websocket],
    ["GET /portForward/default/web?port=0", '400 port "0" must be > 0', websocket],
    [
      "GET /portForward/default/web?port=1,x",
      '400 unable to parse "1,x" as a port: strconv.ParseUint: parsing "x": invalid syntax',
      websocket,
    ],
    ["GET /run/default/web/c?cmd=true", "405 405: Method Not Allowed", {}],
    ["POST /run/default/none/c?cmd=true", "404 pod does not exist", {}],
  ];
  for (const [line, expected, headers] of cases) t.equal(await respond(line, headers), expected, line);
  for (const [code, status] of [
    ["NOT_FOUND", 404],
    ["RESOURCE_EXHAUSTED", 429],
    ["UNKNOWN", 500],
  ] as const) {
    Object.assign(fake.runtime, { exec: () => Promise.reject(new RuntimeError(code, "x")) });
    t.match(await respond("POST /exec/default/web/c?output=1"), new RegExp(`^${status} rpc error: code = .* desc = x`));
  }
});

t.test("run responds with the output, or with the exit code", async (t) => {
  const { handler, fake } = await start(t);
  fake.execs.set("echo a", { exitCode: 0, stdout: "a\n" });
  fake.execs.set("ls x", { exitCode: 1, stderr: "no x" });
  const run = async (cmd: string): Promise<string> => {
    const response = await handler(makeRequest({ method: "POST", path: "/run/default/web/c", query: `cmd=${cmd}` }));
    return `${response.status} ${await text(response)}`;
  };
  t.equal(await run("echo%20a"), "200 a\n");
  t.equal(await run("ls%20x"), "500 command 'ls x' exited with 1: no x");
});

/** Opens an exec through the handler; resolves with the end of the connection. */
async function exec(handler: Handler, types: readonly string[]) {
  const input = new PassThrough();
  const stop = new AbortController();
  const request: HttpRequest = {
    ...makeRequest({
      method: "POST",
      path: "/exec/default/web/c",
      query: "input=1&output=1",
      headers: spdy,
      signal: stop.signal,
    }),
    upgradable: true,
    body: input,
  };
  const response = await handler(request);
  const connection = new SpdyConnection({
    input: response.body as AsyncIterable<Uint8Array>,
    output: input,
    role: "client",
  });
  const received = new Map<string, string>();
  const streams = types.map((streamtype) =>
    connection.open(
      { streamtype },
      { data: (chunk) => void received.set(streamtype, (received.get(streamtype) ?? "") + chunk), end: () => {} },
    ),
  );
  const ended = connection.run().catch(() => {});
  return { response, streams, received, ended, stop };
}

t.test("the connection is forwarded to the runtime's streaming server, both ways", async (t) => {
  const { handler } = await start(t, {
    expects: ["error", "stdin"],
    run: async ({ read, streams, request }) => {
      await streams.get("stdin")?.write((await read("stdin")) ?? Buffer.alloc(0));
      return request.headers["x-forwarded-for"] ?? "";
    },
  });
  const { response, streams, received, ended } = await exec(handler, ["error", "stdin"]);
  t.same([response.status, response.headers["x-stream-protocol-version"]], [101, "v4.channel.k8s.io"]);
  await streams[1]?.write(Buffer.from("hello"));
  await ended;
  t.same(
    [...received],
    [
      ["stdin", "hello"],
      ["error", "127.0.0.1"],
    ],
  );
});

t.test("an invalid frame of a client ends its connection, and does not reach the runtime", async (t) => {
  const received: Buffer[] = [];
  const runtime = createServer((socket) => {
    let isSwitched = false;
    socket.on("data", (chunk: Buffer) => {
      if (isSwitched) received.push(chunk);
      else socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
      isSwitched = true;
    });
    socket.on("error", () => {});
  });
  await once(runtime.listen(0, "127.0.0.1"), "listening");
  t.teardown(() => runtime.close());
  const { handler, fake } = await start(t);
  fake.streamingUrl = `http://127.0.0.1:${(runtime.address() as AddressInfo).port}`;
  const body = new PassThrough();
  const line = { method: "POST", path: "/exec/default/web/c", query: "output=1", headers: spdy };
  const response = await handler({ ...makeRequest(line), upgradable: true, body });
  const ping = pingFrame(1);
  body.write(ping);
  await until("the valid frame arrives", () => received.length > 0);
  body.write(Buffer.from("8003000400000004ffffffff", "hex"));
  await t.rejects(text(response), { code: "ERR_STREAM_PREMATURE_CLOSE" });
  t.equal(Buffer.concat(received).toString("hex"), ping.toString("hex"));
});

t.test("a refusal of the runtime passes as it is", async (t) => {
  const { handler } = await start(t, { expects: [], run: async () => "" });
  const headers = { ...spdy, "x-stream-protocol-version": "v9" };
  const response = await handler({
    ...makeRequest({ method: "POST", path: "/exec/default/web/c", query: "output=1", headers }),
    upgradable: true,
  });
  t.same([response.status, await text(response)], [403, "unable to upgrade: client supports [v9]\n"]);
});

t.test("an idle stream ends, and so does that of a client that leaves", async (t) => {
  const { promise: left, resolve } = Promise.withResolvers<void>();
  const played: PlayedStreamsOptions = {
    expects: ["error", "stdin"],
    run: async ({ read }) => {
      await read("stdin");
      resolve();
      return undefined;
    },
  };
  const idle = await exec((await start(t, played, 100)).handler, ["error", "stdin"]);
  const began = performance.now();
  await idle.ended;
  t.ok(performance.now() - began >= 50, "not at once");
  const gone = await exec((await start(t, played)).handler, ["error", "stdin"]);
  gone.stop.abort();
  await Promise.all([gone.ended, left]);
});
