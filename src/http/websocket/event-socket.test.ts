import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import fc from "fast-check";
import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { readBody } from "../body.ts";
import type { Handler } from "../message.ts";
import { bytesResponse, textResponse } from "../respond.ts";
import { listen } from "../server/server.ts";
import { webSocketResponse } from "./event-socket.ts";
import { isWebSocketRequest, offeredProtocols } from "./handshake.ts";

const sizes = [0, 1, 125, 126, 65_535, 65_536, 1_000_000];

const handler: Handler = async (request) => {
  if (!isWebSocketRequest(request)) return bytesResponse(200, "text/plain", await readBody(request, 1000));
  if (request.path === "/refused") return textResponse(403, "refused");
  const [protocol] = offeredProtocols(request);
  const endless = request.path === "/endless";
  return webSocketResponse(request, messages(endless ? request.signal : undefined), { protocol, type: "binary" });
};

async function* messages(until: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
  if (until === undefined) for (const size of sizes) yield Buffer.alloc(size, size % 251);
  else {
    yield Buffer.from("first");
    await once(until, "abort");
  }
}

async function serve(t: Test): Promise<number> {
  const listener = await listen({ handler, log: silentLogger, host: "127.0.0.1", upgrades: true });
  t.teardown(() => listener.close());
  return listener.port;
}

function handshake(path: string, more = "", key = randomBytes(16).toString("base64")): string {
  const headers = `Host: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n`;
  return `GET ${path} HTTP/1.1\r\n${headers}Sec-WebSocket-Key: ${key}\r\n${more}\r\n`;
}

/** All that the server sends until it closes the connection. */
async function readAll(socket: Socket): Promise<Buffer> {
  // A test fails instead of waiting.
  socket.setTimeout(5000, () => socket.destroy());
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  if (!socket.closed) await once(socket, "close");
  return Buffer.concat(chunks);
}

function frame(opcode: number, payload: Uint8Array): Buffer {
  const mask = randomBytes(4);
  const masked = Buffer.from(payload).map((byte, index) => byte ^ mask[index % 4]!);
  const length =
    payload.length < 126 ? [0x80 | payload.length] : [0x80 | 126, payload.length >> 8, payload.length & 255];
  return Buffer.concat([Buffer.from([0x80 | opcode, ...length]), mask, masked]);
}

t.test("webSocketResponse() sends messages of any size, which Node's client reads, and closes", async (t) => {
  const port = await serve(t);
  const client = new WebSocket(`ws://127.0.0.1:${port}/`, ["one"]);
  client.binaryType = "arraybuffer";
  const received: ArrayBuffer[] = [];
  client.addEventListener("message", ({ data }) => received.push(data as ArrayBuffer));
  const [{ code, wasClean }] = (await once(client, "close")) as [{ code: number; wasClean: boolean }];
  t.same([code, wasClean, client.protocol], [1000, true, "one"]);
  t.same(
    received.map(({ byteLength }) => byteLength),
    sizes,
  );
  t.ok(received.every((data) => Buffer.from(data).every((byte) => byte === data.byteLength % 251)));
});

t.test("webSocketResponse() answers pings and skips messages, wherever the client's bytes are split", async (t) => {
  const port = await serve(t);
  const sent = Buffer.concat([
    frame(1, randomBytes(3)),
    frame(9, Buffer.from("a")),
    frame(2, randomBytes(70_000).subarray(0, 60_000)),
    frame(9, Buffer.from("b")),
    frame(8, Buffer.from([3, 232])),
  ]);
  const wanted = Buffer.from("\x82\x05first\x8a\x01a\x8a\x01b\x88\x02\x03\xe8", "latin1");
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(sent.length), { maxLength: 5 }), async (cuts) => {
      const socket = connect(port, "127.0.0.1", () => socket.write(handshake("/endless")));
      socket.setNoDelay(true);
      await once(socket, "connect");
      const ends = [...cuts, sent.length].sort((a, b) => a - b);
      const all = readAll(socket);
      await new Promise((resolve) => setTimeout(resolve, 20));
      for (const [index, end] of ends.entries()) {
        socket.write(sent.subarray(ends[index - 1] ?? 0, end));
        await new Promise((resolve) => setImmediate(resolve));
      }
      const bytes = await all;
      return bytes.subarray(bytes.indexOf("\r\n\r\n") + 4).equals(wanted);
    }),
    { numRuns: 20 },
  );
  t.pass();
});

t.test("webSocketResponse() closes with 1002 after a frame that violates the protocol", async (t) => {
  const port = await serve(t);
  const violations = {
    unmasked: Buffer.from([0x81, 1, 65]),
    "with reserved bits": Buffer.from([0xc1, 0x80, 0, 0, 0, 0]),
    "a long ping": Buffer.from([0x89, 0xfe, 0, 126, 0, 0, 0, 0]),
    "a ping in parts": Buffer.from([0x09, 0x80, 0, 0, 0, 0]),
  };
  for (const [what, bytes] of Object.entries(violations)) {
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(Buffer.concat([Buffer.from(handshake("/endless")), bytes])),
    );
    const received = await readAll(socket);
    t.ok(received.subarray(0, 12).equals(Buffer.from("HTTP/1.1 101")), what);
    t.ok(received.subarray(-4).equals(Buffer.from([0x88, 2, 0x03, 0xea])), what);
  }
});

t.test("a request that cannot or may not switch protocols gets an ordinary response", async (t) => {
  const port = await serve(t);
  const exchange = async (text: string): Promise<string> => {
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    return (await readAll(socket)).toString("latin1");
  };
  t.match(await exchange(handshake("/refused")), /^HTTP\/1\.1 403 [\s\S]*connection: close\r\n[\s\S]*\r\n\r\nrefused/i);
  t.match(await exchange(handshake("/", "", "short")), /^HTTP\/1\.1 400 [\s\S]*the WebSocket key is invalid/);
  t.match(await exchange(handshake("/").replace("n: 13", "n: 8")), /^HTTP\/1\.1 400 [\s\S]*version is not 13/);
  t.match(
    await exchange(handshake("/").replace("Host: a\r\n", "")),
    /^HTTP\/1\.1 400 [\s\S]*missing required Host header/,
  );
  const withBody = handshake("/", "Content-Length: 5\r\n").replace("GET", "POST");
  const socket = connect(port, "127.0.0.1", () => socket.write(`${withBody}hello`));
  socket.once("data", () => socket.write("GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
  const responses = (await readAll(socket)).toString("latin1");
  t.match(
    responses,
    /^HTTP\/1\.1 200 [\s\S]*\r\n\r\nhelloHTTP\/1\.1 200 /,
    "the body is read, and the connection goes on",
  );
});

t.test("the request of a WebSocket is aborted when its client disconnects", async (t) => {
  const ended = Promise.withResolvers<void>();
  const watched: Handler = (request) => {
    request.signal.addEventListener("abort", () => ended.resolve());
    return handler(request);
  };
  const listener = await listen({ handler: watched, log: silentLogger, host: "127.0.0.1", upgrades: true });
  const socket = connect(listener.port, "127.0.0.1", () => socket.write(handshake("/endless")));
  await once(socket, "data");
  socket.destroy();
  await ended.promise;
  await listener.close(1000);
  t.pass();
});

t.test("a stopping server does not wait for connections with another protocol", async (t) => {
  const open: Handler = async () => ({ status: 101, headers: { upgrade: "x" }, body: new PassThrough() });
  const server = await listen({ handler: open, log: silentLogger, upgrades: true, host: "127.0.0.1" });
  const socket = connect(server.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
  await once(socket, "data");
  const began = performance.now();
  await server.close(20_000);
  t.ok(performance.now() - began < 5000);
});
