/**
 * Requests whose bodies arrive in chunks of one byte, read or not: the longest turn of the event loop, and the memory
 * of a server with a small heap.
 */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "node:tls";
import t from "tap";
import { startMeasuredServer } from "./measured-server.ts";

const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
/** Several times what is measured; each chunk by itself took 200 bytes. */
const TURN_MS_MAX = 300;
const HEAP_MIB_MAX = 40;
/** Chunks that are written at once. */
const PART = 4096;

t.setTimeout(120_000);

interface ChunkedRequest {
  readonly what: string;
  readonly line: string;
  readonly token: string;
  readonly chunks: number;
  readonly connections?: number;
}

const requests: readonly ChunkedRequest[] = [
  { what: "review without rights", line: `POST ${REVIEWS}`, token: "owner", chunks: 200 * 1024 },
  { what: "ConfigMap of 2 MiB", line: `POST ${CONFIG_MAPS}`, token: "admin", chunks: 2 * 2 ** 20 },
  {
    what: "20 watches, which read no body",
    line: `GET ${CONFIG_MAPS}?watch=1&timeoutSeconds=2`,
    token: "admin",
    chunks: 100 * 1024,
    connections: 20,
  },
];

/** Resolves when the server has answered, or does not read on. */
async function sendInChunks(port: number, { line, token, chunks }: ChunkedRequest): Promise<void> {
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] });
  const ended = new Promise<void>((resolve) => {
    socket.on("error", () => resolve());
    socket.on("close", () => resolve());
    socket.on("data", () => resolve());
  });
  await Promise.race([once(socket, "secureConnect"), ended]);
  const headers = ["host: x", `authorization: Bearer ${token}`, "content-type: application/json"];
  socket.write(`${line} HTTP/1.1\r\n${headers.join("\r\n")}\r\ntransfer-encoding: chunked\r\n\r\n`);
  const part = "1\r\n \r\n".repeat(PART);
  for (let sent = 0; sent < chunks && !socket.destroyed; sent += PART) {
    if (socket.write(part)) continue;
    const isStopped = await Promise.race([once(socket, "drain").then(() => false), sleep(500, true)]);
    if (isStopped) break;
  }
  socket.write("2\r\n{}\r\n0\r\n\r\n");
  await Promise.race([ended, sleep(3000)]);
  socket.destroy();
}

t.test("bodies in chunks of one byte take short turns and little memory", async (t) => {
  await using server = await startMeasuredServer(t.testdir());
  const port = Number(/"?address"?[:=]\s*"?127\.0\.0\.1:(\d+)/.exec(server.log())?.[1]);
  for (const request of requests) {
    await sendInChunks(port, { ...request, chunks: PART });
    const [, { ms, heapMiB }] = await server.measure(async () => {
      await Promise.all(Array.from({ length: request.connections ?? 1 }, () => sendInChunks(port, request)));
    });
    t.ok(ms < TURN_MS_MAX * (request.connections ?? 1), `${request.what}: ${Math.round(ms)} ms`);
    t.ok(heapMiB < HEAP_MIB_MAX, `${request.what}: ${Math.round(heapMiB)} MiB`);
  }
});
