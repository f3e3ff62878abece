import { PassThrough } from "node:stream";
import t, { type Test } from "tap";
import type { HttpRequest } from "../../../http/message.ts";
import { makeRequest } from "../../../http/request.ts";
import { textResponse } from "../../../http/respond.ts";
import { listen } from "../../../http/server/server.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { MetricRegistry } from "../../../std/metrics/metrics.ts";
import { type PlayedStreamsOptions, playStreams } from "../../../testing/http/played-streams.ts";
import { until } from "../../../testing/std/until.ts";
import { isStreamCloseRequest } from "./channel-socket.ts";
import { registerStreamMetrics } from "./stream-metrics.ts";
import { type RequestedStreams, translateStreams } from "./stream-translator.ts";

const handshake = {
  upgrade: "websocket",
  connection: "Upgrade",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  "sec-websocket-protocol": "v4.channel.k8s.io, v5.channel.k8s.io",
};

/** Listens as an agent. */
async function agent(t: Test, handler: Parameters<typeof listen>[0]["handler"]): Promise<number> {
  const listener = await listen({ handler, log: silentLogger, upgrades: true, host: "127.0.0.1" });
  t.teardown(() => listener.close());
  return listener.port;
}

interface Client {
  /** Sends a message of a channel. */
  readonly send: (channel: number, data: string | Uint8Array) => boolean;
  /** Sends bytes as they are. */
  readonly raw: PassThrough;
  /** By channel. */
  readonly received: Map<number, string>;
  readonly closes: number[];
  ended: boolean;
}

const { translated: requests } = registerStreamMetrics(new MetricRegistry());

function websocketRequest(body: HttpRequest["body"], headers: Readonly<Record<string, string>> = {}): HttpRequest {
  return { ...makeRequest({ path: "/exec", headers: { ...handshake, ...headers } }), upgradable: true, body };
}

function translated(port: number, streams: RequestedStreams, signal = new AbortController().signal): Client {
  const raw = new PassThrough();
  const to = { secure: false, host: "127.0.0.1", port, path: "/exec/a/b/c?output=1" };
  const response = translateStreams(websocketRequest(raw), to, { streams, signal, requests });
  const client: Client = {
    send: (channel, data) => raw.write(masked(0x82, Buffer.concat([Buffer.of(channel), Buffer.from(data)]))),
    raw,
    received: new Map(),
    closes: [],
    ended: false,
  };
  void collect(client, response.body as AsyncIterable<Uint8Array>);
  return client;
}

function masked(first: number, payload: Buffer): Buffer {
  const head =
    payload.length < 126 ? [first, 0x80 | payload.length] : [first, 0xfe, payload.length >> 8, payload.length & 255];
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), payload]);
}

async function collect(client: Client, body: AsyncIterable<Uint8Array>): Promise<void> {
  let pending = Buffer.alloc(0);
  for await (const chunk of body) {
    pending = Buffer.concat([pending, chunk]);
    for (;;) {
      const short = pending[1] ?? 0;
      const start = short === 126 ? 4 : short === 127 ? 10 : 2;
      if (pending.length < start) break;
      const length =
        short === 126 ? pending.readUInt16BE(2) : short === 127 ? Number(pending.readBigUInt64BE(2)) : short;
      if (pending.length < start + length) break;
      const [opcode, payload] = [pending[0]! & 15, pending.subarray(start, start + length)];
      pending = pending.subarray(start + length);
      if (opcode === 8) client.closes.push(payload.readUInt16BE(0));
      else if (opcode === 2) {
        client.received.set(payload[0]!, (client.received.get(payload[0]!) ?? "") + payload.toString("utf8", 1));
      }
    }
  }
  client.ended = true;
}

const success = '{"metadata":{},"status":"Success"}';

async function play(t: Test, options: PlayedStreamsOptions, streams: RequestedStreams): Promise<Client> {
  return translated(await agent(t, playStreams(options)), streams);
}

t.test("input, its end and the output pass, and the result is the last message", async (t) => {
  const lines: string[] = [];
  const client = await play(
    t,
    {
      expects: ["error", "stdin", "stdout", "stderr"],
      run: async ({ streams, read, protocol }) => {
        for (let chunk = await read("stdin"); chunk !== undefined; chunk = await read("stdin"))
          lines.push(chunk.toString());
        await streams.get("stdout")?.write(Buffer.from(`out ${protocol}`));
        await streams.get("stderr")?.write(Buffer.from("err"));
        return success;
      },
    },
    { stdin: true, stdout: true, stderr: true },
  );
  client.send(0, "one");
  client.send(9, "of no channel");
  client.send(1, "of an output");
  client.send(255, Uint8Array.of(0));
  client.send(0, "late");
  await until("the end", () => client.ended);
  t.equal(lines.join(""), "one");
  t.same(
    [...client.received],
    [
      [1, "out v4.channel.k8s.io"],
      [2, "err"],
      [3, success],
    ],
  );
  t.same(client.closes, [1000]);
});

t.test("results have kube-apiserver's words", async (t) => {
  const failure = (reason: string, message: string, causes?: object): string =>
    JSON.stringify({
      metadata: {},
      status: "Failure",
      reason,
      message,
      ...(causes === undefined ? {} : { details: { causes } }),
    });
  const exit = (message: string): string => failure("NonZeroExitCode", "x", [{ reason: "ExitCode", message }]);
  const internal = (message: string): object => ({
    reason: "InternalError",
    code: 500,
    message: `Internal error occurred: ${message}`,
  });
  const cases: readonly (readonly [string | undefined, object])[] = [
    [success, { status: "Success" }],
    ["", { status: "Success" }],
    [
      exit("7"),
      {
        reason: "NonZeroExitCode",
        message: "command terminated with non-zero exit code: command terminated with exit code 7",
        details: { causes: [{ reason: "ExitCode", message: "7" }] },
      },
    ],
    [exit("300"), internal('error stream protocol error: invalid exit code value "300"')],
    [failure("NonZeroExitCode", "x", []), internal("error stream protocol error: no ExitCode cause given")],
    [failure("NonZeroExitCode", "x"), internal("error stream protocol error: details must be set")],
    [failure("InternalError", "no such file"), internal("no such file")],
    ["{}", internal("error stream protocol error: unknown error")],
    ["garbage", internal('error stream protocol error: invalid JSON in "garbage"')],
    [undefined, internal("error reading from error stream: unexpected EOF")],
  ];
  for (const [result, expected] of cases) {
    const client = await play(t, { expects: ["error", "stdout"], run: async () => result }, { stdout: true });
    await until("the end", () => client.ended);
    t.match(JSON.parse(client.received.get(3) ?? ""), expected, String(result));
  }
});

t.test("errors of the agent arrive on the error channel", async (t) => {
  const refused = await agent(t, async () => textResponse(500, 'container not found ("c")'));
  const client = translated(refused, { stdin: true });
  await until("the end", () => client.ended);
  const message = 'unable to upgrade connection: container not found ("c")';
  t.match(JSON.parse(client.received.get(3) ?? ""), {
    message: `Internal error occurred: ${message}`,
    details: { causes: [{ message }] },
  });
  const status = { kind: "Status", status: "Failure", message: "busy", reason: "TooManyRequests", code: 429 };
  const limited = translated(await agent(t, async () => textResponse(429, JSON.stringify(status))), { stdout: true });
  await until("the end", () => limited.ended);
  t.match(JSON.parse(limited.received.get(3) ?? ""), status);
  const down = translated(1, { stdout: true });
  await until("the end", () => down.ended);
  t.match(
    down.received.get(3),
    /error sending request: Post \\"https:\/\/127.0.0.1:1\/exec\/a\/b\/c\?output=1\\": dial tcp 127.0.0.1:1: connect: connection refused/,
  );
});

t.test("sizes of the terminal pass, and a terminal has no stderr", async (t) => {
  const sizes: string[] = [];
  const client = await play(
    t,
    {
      expects: ["error", "stdout", "resize"],
      run: async ({ read, streams }) => {
        sizes.push((await read("resize"))?.toString() ?? "", streams.has("stderr") ? "stderr" : "");
        return success;
      },
    },
    { stdout: true, stderr: true, tty: true },
  );
  client.send(4, '{"Width":33,"Height":44}');
  await until("the end", () => client.ended);
  t.same(sizes, ['{"Width":33,"Height":44}\n', ""]);
});

t.test("a client that closes, violates the protocol or leaves ends the stream of the agent", async (t) => {
  const close = masked(0x88, Buffer.from([3, 232]));
  const endings: Readonly<Record<string, readonly [(client: Client) => void, number]>> = {
    "a close frame": [({ raw }) => raw.write(close), 1000],
    "the end of the connection": [({ raw }) => raw.end(), 1000],
    "an invalid frame": [({ raw }) => raw.write(Buffer.from([0x83, 0x80, 0, 0, 0, 0])), 1002],
    "a close signal of an unknown channel": [({ send }) => send(255, Uint8Array.of(9)), 1000],
    "a close signal without a channel": [({ send }) => send(255, ""), 1000],
  };
  for (const [name, [end, code]] of Object.entries(endings)) {
    const { promise, resolve } = Promise.withResolvers<void>();
    const client = await play(
      t,
      {
        expects: ["error", "stdin", "stdout"],
        run: async ({ read, streams }) => {
          await streams.get("stdout")?.write(Buffer.from("up"));
          await read("stdin");
          resolve();
          return undefined;
        },
      },
      { stdin: true, stdout: true },
    );
    await until("output", () => client.received.get(1) === "up");
    end(client);
    await promise;
    await until("the end", () => client.ended);
    t.same(client.closes, [code], name);
  }
});

t.test("a client that does not read stops the agent, and its memory does not grow", async (t) => {
  let written = 0;
  const port = await agent(
    t,
    playStreams({
      expects: ["error", "stdout"],
      run: async ({ streams }) => {
        const chunk = Buffer.alloc(64 * 1024);
        for (let count = 0; count < 1000; count++) {
          await streams.get("stdout")?.write(chunk);
          written += chunk.length;
        }
        return success;
      },
    }),
  );
  const raw = new PassThrough();
  const to = { secure: false, host: "127.0.0.1", port, path: "/exec" };
  const { signal } = new AbortController();
  const { body } = translateStreams(websocketRequest(raw), to, { streams: { stdout: true }, signal, requests });
  await new Promise((resolve) => setTimeout(resolve, 300));
  const before = written;
  await new Promise((resolve) => setTimeout(resolve, 100));
  t.equal(written, before, "the agent waits");
  t.ok(written < 32 * 1024 * 1024, `${written} bytes are in the connections`);
  let length = 0;
  for await (const chunk of body as AsyncIterable<Uint8Array>) length += chunk.length;
  t.ok(length >= 1000 * 64 * 1024, "all arrives");
});

t.test("an invalid handshake gets the answers of golang.org/x/net/websocket", async (t) => {
  const to = { secure: false, host: "127.0.0.1", port: 1, path: "/" };
  const respond = (request: HttpRequest) =>
    translateStreams(request, to, { streams: { stdout: true }, signal: request.signal, requests });
  const body = new PassThrough();
  const old = respond(websocketRequest(body, { "sec-websocket-version": "8" }));
  t.same(
    [old.status, String(old.body), old.headers["sec-websocket-version"]],
    [400, "missing or bad WebSocket Version", "13"],
  );
  t.same(String(respond(websocketRequest(body, { "sec-websocket-key": "" })).body), "mismatch challenge/response");
  const post = respond({ ...websocketRequest(body), method: "POST" });
  t.same([post.status, String(post.body)], [405, "bad method"]);
  t.ok(isStreamCloseRequest(websocketRequest(body)));
  t.notOk(isStreamCloseRequest(websocketRequest(body, { "sec-websocket-protocol": "V5.channel.k8s.io" })));
});

t.test("requests are counted by the code of their result", async (t) => {
  const counts = (): readonly number[] => ["200", "400", "500"].map((code) => requests.with(code).value);
  const before = counts();
  const counted = async (handler: Parameters<typeof listen>[0]["handler"]): Promise<readonly number[]> => {
    const client = translated(await agent(t, handler), { stdout: true });
    await until("the end", () => client.ended);
    return counts().map((count, index) => count - before[index]!);
  };
  const results = (text: string) => playStreams({ expects: ["error", "stdout"], run: async () => text });
  const causes = [{ reason: "ExitCode", message: "7" }];
  const exit = JSON.stringify({ status: "Failure", reason: "NonZeroExitCode", details: { causes } });
  t.same(await counted(results(success)), [1, 0, 0]);
  t.same(await counted(results(exit)), [2, 0, 0], "an exit code is the command's");
  t.same(await counted(async () => textResponse(500, "no")), [2, 0, 1]);
});
