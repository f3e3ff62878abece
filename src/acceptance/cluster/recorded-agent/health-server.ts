/**
 * Runs inside a container of the recorded pods: `health PORT [SERVICE=STATUS…]` answers grpc.health.v1 and, over
 * HTTP/1.1 on the same port, `/code/N?location=L`; prints each request in a line.
 */
import { createServer as createHttp1, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttp2, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { createServer } from "node:net";

const [port = "8080", ...services] = process.argv.slice(2);
const statuses = new Map(services.map((each) => each.split("=") as [string, string]));
const SERVING = 1;
const NOT_FOUND = 5;

/** Headers that are part of the request line or irrelevant. */
const unnamed = new Set(["host", "content-length", "transfer-encoding"]);

function print(protocol: string, method: string, path: string, host: string, body: Buffer, headers: string[][]): void {
  const named = headers
    .filter(([name = ""]) => !name.startsWith(":") && !unnamed.has(name.toLowerCase()))
    .map(([name = "", ...values]) => [name.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase()), ...values])
    .sort(([a = ""], [b = ""]) => (a < b ? -1 : 1))
    .map(([name, ...values]) => `${name}=[${values.map((value) => JSON.stringify(value)).join(" ")}]`);
  console.log([protocol, method, path, `host=${host}`, `body=${body.toString("hex")}`, ...named].join(" "));
}

async function read(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await read(request);
  const headers = Object.entries(request.headersDistinct).map(([name, values = []]) => [name, ...values]);
  print("HTTP/1.1", request.method ?? "", request.url ?? "", request.headers.host ?? "", body, headers);
  const url = new URL(request.url ?? "/", "http://localhost");
  const code = Number(/^\/code\/(\d+)/.exec(url.pathname)?.[1] ?? 200);
  const location = url.searchParams.get("location");
  response.writeHead(code, location === null ? {} : { location }).end();
}

async function onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
  const body = await read(stream);
  const listed = Object.entries(headers).map(([name, value]) => [name, String(value)]);
  print("HTTP/2.0", headers[":method"] ?? "", headers[":path"] ?? "", headers[":authority"] ?? "", body, listed);
  const service = body.subarray(7).toString("utf8");
  const status = service === "" ? SERVING : Number(statuses.get(service) ?? Number.NaN);
  const known = !Number.isNaN(status);
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => {
    stream.sendTrailers(
      known ? { "grpc-status": "0" } : { "grpc-status": NOT_FOUND, "grpc-message": "unknown service" },
    );
  });
  stream.end(known ? Buffer.from([0, 0, 0, 0, 2, 8, status]) : undefined);
}

const http1 = createHttp1((request, response) => void onRequest(request, response));
const http2 = createHttp2();
http2.on("stream", (stream: ServerHttp2Stream, headers) => void onStream(stream, headers).catch(() => stream.close()));
createServer((socket) => {
  socket.on("error", () => socket.destroy());
  socket.once("readable", () => {
    const start = socket.read() as Buffer | null;
    if (start === null) return;
    socket.unshift(start);
    (start.subarray(0, 3).toString() === "PRI" ? http2 : http1).emit("connection", socket);
  });
}).listen(Number(port));
// Exits as a Go program does; process 1 of a PID namespace ignores unhandled signals.
process.on("SIGTERM", () => process.exit(process.pid === 1 ? 2 : 143));
