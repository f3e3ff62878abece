/** Clients that leave while a response is being sent: no error is logged, however they leave. */
import { once } from "node:events";
import { connect as connectHttp2, constants } from "node:http2";
import { connect as connectTcp } from "node:net";
import { PassThrough } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import t from "tap";
import type { Logger } from "../../std/log/logger.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { readBody } from "../body.ts";
import type { Handler, HttpRequest, HttpResponse } from "../message.ts";
import { bytesResponse, textResponse } from "../respond.ts";
import { listen } from "./server.ts";

const pair = (await makeServerCertificate()).server;

/** Handlers as those of attach, exec, proxies and watches. */
const HANDLERS: Readonly<Record<string, (request: HttpRequest) => HttpResponse | Promise<HttpResponse>>> = {
  "/echo": (request) => streamOf(request.body),
  "/messages": (request) => streamOf(messages(request)),
  "/watch": (request) => streamOf(ticks(request.signal)),
  "/backend": (request) => streamOf(backend(request)),
  "/filtered": (request) => streamOf(copyOf(backend(request))),
  "/upload": async (request) => textResponse(200, String((await readBody(request, 1000)).length)),
};

function streamOf(body: AsyncIterable<Uint8Array>): HttpResponse {
  return bytesResponse(200, "text/plain", body);
}

/** Ends when the client's messages end. */
async function* messages(request: HttpRequest): AsyncGenerator<Uint8Array> {
  yield Buffer.from("first");
  for await (const chunk of request.body) yield chunk;
}

async function* ticks(signal: AbortSignal): AsyncGenerator<Uint8Array> {
  while (!signal.aborted) {
    yield Buffer.from("tick");
    await nextTurn();
  }
  signal.throwIfAborted();
}

/** A connection to another server, which is destroyed with the client's. */
function backend(request: HttpRequest): PassThrough {
  const source = new PassThrough();
  source.write("first");
  void readToEnd(request).finally(() => source.destroy());
  return source;
}

async function* copyOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* source;
}

async function readToEnd(request: HttpRequest): Promise<void> {
  try {
    for await (const _ of request.body);
  } catch {
    // The client left.
  }
}

/** `cut` and `reset` end the TCP connection under TLS. */
const WAYS = ["end", "destroy", "cut", "reset"] as const;

function* combinations(): Generator<readonly [(typeof WAYS)[number], string, boolean]> {
  for (const way of WAYS) {
    for (const path of Object.keys(HANDLERS)) {
      yield [way, path, false];
      if (path !== "/upload") yield [way, path, true];
    }
  }
}

class Errors implements Logger {
  readonly lines: string[] = [];
  info(): void {}
  warn(message: string): void {
    this.lines.push(message);
  }
  error(message: string, error?: unknown): void {
    this.lines.push(`${message}: ${String(error)}`);
  }
  text(): void {}
  v(): undefined {
    return undefined;
  }
  child(): Logger {
    return this;
  }
}

t.test("over HTTP/1.1, with and without a switch of protocols, a client that leaves causes no error", async (t) => {
  const log = new Errors();
  let running = 0;
  const started = async (): Promise<void> => {
    while (running === 0) await nextTurn();
  };
  const handler: Handler = async (request) => {
    running++;
    request.signal.addEventListener("abort", () => running--, { once: true });
    const response = await HANDLERS[request.path]!(request);
    return request.upgradable ? { ...response, status: 101, headers: { upgrade: "spdy/3.1" } } : response;
  };
  for (const secure of [false, true]) {
    const tls = secure ? { cert: pair.cert, key: pair.key } : undefined;
    await using listener = await listen({ handler, log, host: "127.0.0.1", upgrades: true, tls });
    for (const [way, path, upgrade] of combinations()) {
      const tcp = connectTcp(listener.port, "127.0.0.1");
      const socket = secure ? connectTls({ socket: tcp, rejectUnauthorized: false }) : tcp;
      for (const each of [tcp, socket]) each.on("error", () => {});
      const head = upgrade ? "connection: upgrade\r\nupgrade: spdy/3.1\r\n" : "content-length: 100\r\n";
      socket.write(`${upgrade ? "GET" : "POST"} ${path} HTTP/1.1\r\nhost: a\r\n${head}\r\nhello`);
      if (path === "/upload") await started();
      else await once(socket, "data");
      if (way === "end") socket.end();
      if (way === "destroy") socket.destroy();
      if (way === "cut") tcp.destroy();
      if (way === "reset") tcp.resetAndDestroy();
      const timer = setTimeout(() => socket.destroy(), 10);
      socket.resume();
      while (running > 0) await nextTurn();
      clearTimeout(timer);
      socket.destroy();
      t.same(log.lines.splice(0), [], `${path} ${way}${secure ? ", TLS" : ""}${upgrade ? ", upgraded" : ""}`);
    }
  }
});

t.test("over HTTP/2 a client that resets its stream or leaves causes no error", async (t) => {
  const log = new Errors();
  const tls = { cert: pair.cert, key: pair.key };
  let running = 0;
  const handler: Handler = async (request) => {
    running++;
    request.signal.addEventListener("abort", () => running--, { once: true });
    return await HANDLERS[request.path]!(request);
  };
  const listener = await listen({ handler, log, host: "127.0.0.1", tls });
  t.teardown(() => listener.close());
  for (const way of ["cancel", "session"]) {
    for (const path of Object.keys(HANDLERS)) {
      const session = connectHttp2(`https://127.0.0.1:${listener.port}`, { rejectUnauthorized: false });
      session.on("error", () => {});
      const stream = session.request({ ":path": path, ":method": "POST" });
      stream.on("error", () => {});
      stream.write("hello");
      if (path === "/upload") await once(session, "connect");
      else await once(stream, "data");
      if (way === "cancel") stream.close(constants.NGHTTP2_CANCEL);
      else session.destroy();
      if (!stream.closed) await once(stream, "close");
      session.destroy();
      while (running > 0) await nextTurn();
      t.same(log.lines.splice(0), [], `${path} ${way}`);
    }
  }
});
