/** Malicious clients: each is refused, costs a bounded amount, and does not affect other clients. */
import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import t, { type Test } from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";
import {
  FLAG,
  frame,
  headerBlock,
  PREFACE,
  RawConnection,
  settings,
  TYPE,
  uint32,
} from "../../testing/http/test-frames.ts";
import { readBody } from "../body.ts";
import type { Handler } from "../message.ts";
import { bytesResponse, textResponse } from "../respond.ts";
import type { ListenLimits } from "./exchange.ts";
import type { Listener } from "./listener.ts";
import { listen } from "./server.ts";

const pair = (await makeServerCertificate()).server;
const { ack, endHeaders, endStream } = FLAG;
const fields = (path: string, method = "GET") =>
  [
    [":method", method],
    [":scheme", "https"],
    [":path", path],
    [":authority", "localhost"],
  ] as const;
const get = (path: string, stream: number): Buffer =>
  frame(TYPE.headers, endHeaders | endStream, stream, headerBlock(fields(path)));

const LARGE = Buffer.alloc(20_000_000, 1);
let running = 0;
let most = 0;
const handler: Handler = async (request) => {
  running++;
  most = Math.max(most, running);
  try {
    switch (request.path) {
      case "/hang":
        await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
        return textResponse(200, "late");
      case "/body":
        return textResponse(200, String((await readBody(request, 1000)).length));
      case "/late":
        return textResponse(504, "no body came\n");
      case "/large":
        return bytesResponse(200, "text/plain", LARGE);
      default:
        return textResponse(200, "ok");
    }
  } finally {
    running--;
  }
};

async function serve(t: Test, limits: Partial<ListenLimits> = {}): Promise<Listener> {
  const tls = { cert: pair.cert, key: pair.key };
  const listener = await listen({ handler, log: silentLogger, host: "127.0.0.1", tls, limits });
  t.teardown(() => listener.close());
  return listener;
}

/** Another client is still served, without delay. */
async function others(t: Test, { port }: Listener): Promise<void> {
  await using connection = await RawConnection.open(port);
  connection.send(PREFACE, settings(), get("/", 1));
  t.ok(await connection.until(({ frames }) => frames.some(({ type }) => type === TYPE.data)), "others are served");
}

async function isClosed(t: Test, connection: RawConnection): Promise<void> {
  t.ok(await connection.until(({ closed }) => closed), "the connection is closed");
}

async function closed(socket: Socket): Promise<void> {
  if (!socket.closed) await once(socket, "close");
}

/** Megabytes by which `work` increases the memory of the process. */
async function growth(work: () => Promise<void>): Promise<number> {
  const before = process.memoryUsage().rss;
  await work();
  return (process.memoryUsage().rss - before) / 2 ** 20;
}

t.test("listen() closes connections that never finish their handshake, preface or headers", async (t) => {
  const listener = await serve(t, { handshakeTimeoutMs: 1500, headerTimeoutMs: 1500, idleTimeoutMs: 1500 });
  const sockets: Socket[] = [];
  for (let count = 0; count < 50; count++) {
    const socket = connectTcp(listener.port, "127.0.0.1");
    socket.on("error", () => {});
    if (count % 2 === 0) socket.write(Buffer.from("1603010200010001fc0303", "hex"));
    sockets.push(socket.resume());
  }
  const silent = await RawConnection.open(listener.port);
  const dawdling = await RawConnection.open(listener.port);
  dawdling.send(PREFACE, settings(), frame(TYPE.headers, endStream, 1, headerBlock(fields("/").slice(0, 1))));
  const old = connectTls({ host: "127.0.0.1", port: listener.port, rejectUnauthorized: false });
  await once(old, "secureConnect");
  old.on("error", () => {}).resume();
  await others(t, listener);
  for (const socket of sockets) await closed(socket);
  await isClosed(t, silent);
  await isClosed(t, dawdling);
  await closed(old);
});

t.test("listen() closes a connection whose request body does not arrive", async (t) => {
  const listener = await serve(t);
  const old = connectTls({ host: "127.0.0.1", port: listener.port, rejectUnauthorized: false });
  await once(old, "secureConnect");
  let response = "";
  old.on("data", (chunk) => {
    response += String(chunk);
  });
  old.write("POST /late HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx");
  await once(old, "close");
  t.match(response, /^HTTP\/1\.1 504 [\s\S]*connection: close/i);
  await using connection = await RawConnection.open(listener.port);
  connection.send(PREFACE, settings(), frame(TYPE.headers, endHeaders, 1, headerBlock(fields("/late", "POST"))));
  t.ok(await connection.until(({ frames }) => frames.some(({ type }) => type === TYPE.reset)), "the stream is reset");
});

t.test("listen() closes connections with rapid resets, those sent by the client and those it provokes", async (t) => {
  const listener = await serve(t);
  for (const spoil of [
    (stream: number) => frame(TYPE.reset, 0, stream, uint32(8)),
    (stream: number) => frame(TYPE.window, 0, stream, uint32(0)),
    (stream: number) => get("/hang", stream),
  ]) {
    const connection = await RawConnection.open(listener.port);
    connection.send(PREFACE, settings());
    most = 0;
    for (let stream = 1; stream < 40_000 && !connection.closed; stream += 2) {
      connection.send(get("/hang", stream), spoil(stream));
      if (stream % 200 === 1) await new Promise(setImmediate);
    }
    await isClosed(t, connection);
    t.ok(most <= 1200, `${most} requests at work`);
    await others(t, listener);
  }
});

t.test(
  "listen() refuses endless, too many or too large headers, also when they are large only after decompression",
  async (t) => {
    const listener = await serve(t);
    const part = headerBlock([["x", "y".repeat(4000)]]);
    const flood = await RawConnection.open(listener.port);
    flood.send(PREFACE, settings(), frame(TYPE.headers, endStream, 1, headerBlock(fields("/"))));
    for (let count = 0; count < 2000 && !flood.closed; count++) flood.send(frame(TYPE.continuation, 0, 1, part));
    await isClosed(t, flood);
    // One entry of 4000 bytes in the table, named 4000 times: 16 MB of headers in 8 KB.
    const name = Buffer.concat([
      Buffer.of(0x40, 1),
      Buffer.from("b"),
      Buffer.of(0x7f, 0xa1, 0x1e),
      Buffer.alloc(4000, 97),
    ]);
    const bomb = await RawConnection.open(listener.port);
    const block = Buffer.concat([headerBlock(fields("/")), name, Buffer.alloc(4000, 0xbe)]);
    const grown = await growth(async () => {
      for (let stream = 1; stream < 200; stream += 2) {
        bomb.send(
          ...(stream === 1 ? [PREFACE, settings()] : []),
          frame(TYPE.headers, endHeaders | endStream, stream, block),
        );
      }
      await bomb.until(({ frames }) => frames.some(({ type }) => type === TYPE.reset || type === TYPE.goaway));
    });
    t.ok(bomb.closed || bomb.frames.some(({ type }) => type === TYPE.reset || type === TYPE.goaway), "refused");
    t.notOk(
      bomb.frames.some(({ type }) => type === TYPE.data),
      "no request succeeds",
    );
    t.ok(grown < 64, `${grown} MB`);
    await bomb[Symbol.asyncDispose]();
    await others(t, listener);
  },
);

t.test(
  "listen() closes connections with floods of pings, settings and empty frames that do not read the acknowledgements",
  async (t) => {
    const listener = await serve(t);
    const floods: Readonly<Record<string, Buffer>> = {
      pings: frame(TYPE.ping, 0, 0, Buffer.alloc(8)),
      settings: settings([4, 65_535]),
      "acknowledgements of nothing": frame(TYPE.settings, ack, 0, Buffer.alloc(0)),
    };
    for (const [name, one] of Object.entries(floods)) {
      const connection = await RawConnection.open(listener.port);
      connection.send(PREFACE, settings());
      connection.socket.pause();
      const many = Buffer.concat(Array.from({ length: 1000 }, () => one));
      const grown = await growth(async () => {
        for (let count = 0; count < 200 && connection.socket.writable; count++) {
          if (!connection.socket.write(many))
            await Promise.race([once(connection.socket, "drain").catch(() => {}), sleep(20)]);
        }
      });
      t.ok(grown < 80, `${name}: ${grown} MB`);
      await others(t, listener);
      connection.socket.resume();
      await connection[Symbol.asyncDispose]();
    }
  },
);

t.test("listen() buffers little of large responses that their client does not read", async (t) => {
  const listener = await serve(t, { stallTimeoutMs: 300 });
  const connection = await RawConnection.open(listener.port);
  const grown = await growth(async () => {
    connection.send(PREFACE, settings([4, 0]));
    for (let stream = 1; stream < 200; stream += 2) connection.send(get("/large", stream));
    await connection.until(({ frames }) => frames.filter(({ type }) => type === TYPE.headers).length === 100);
    await sleep(50);
  });
  t.ok(grown < 64, `${grown} MB for 100 responses of 20 MB`);
  await others(t, listener);
  t.ok(
    await connection.until(({ frames }) => frames.filter(({ type }) => type === TYPE.reset).length === 100),
    "and gives them up at last",
  );
  await connection[Symbol.asyncDispose]();
});

t.test("listen() releases sockets of clients that have isClosed their side and do not read", async (t) => {
  const listener = await serve(t, { idleTimeoutMs: 200, headerTimeoutMs: 200 });
  for (const protocol of ["h2", "http/1.1"]) {
    const half = { rejectUnauthorized: false, ALPNProtocols: [protocol], allowHalfOpen: true };
    const socket = connectTls({ host: "127.0.0.1", port: listener.port, ...half });
    await once(socket, "secureConnect");
    socket.on("error", () => {}).resume();
    socket.end(protocol === "h2" ? Buffer.concat([PREFACE, settings()]) : "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await (socket.readableEnded ? undefined : once(socket, "end"));
    t.pass(protocol);
    socket.destroy();
  }
  await others(t, listener);
  t.equal(running, 0, "no handler is left behind");
});

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
