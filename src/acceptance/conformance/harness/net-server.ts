/**
 * Runs inside a container: `net-server [KEY=VALUE...]` serves HTTP at port 8080, UDP at 8081 and TCP at 8082.
 * `http=N`, `udp=N` and `tcp=N` set other ports, `healthy=N` makes /healthz fail after N seconds.
 */
import { createSocket } from "node:dgram";
import { createServer as createHttpServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer } from "node:net";
import { hostname } from "node:os";

const options = new Map(process.argv.slice(2).map((word) => word.split("=") as [string, string]));
const portOf = (name: string, fallback: number): number => Number(options.get(name) ?? fallback);
const began = performance.now();
const healthyMs = Number(options.get("healthy") ?? Number.POSITIVE_INFINITY) * 1000;
/** What clients have stored with /set. */
const stored = new Map<string, string>();

/** Resolves with the text of a URL of another server. */
function read(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false, timeout: 5000 }, (response) => {
      let text = "";
      response.on("data", (chunk) => (text += chunk));
      response.on("end", () => resolve(text));
    }).on("error", reject);
  });
}

/** Sends a datagram and resolves with the answer. */
function exchange(host: string, port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createSocket("udp4");
    const timer = setTimeout(() => socket.close(() => reject(new Error("no answer"))), 3000);
    socket.once("message", (message) => {
      clearTimeout(timer);
      socket.close(() => resolve(message.toString()));
    });
    socket.once("error", reject);
    socket.send(text, port, host);
  });
}

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://localhost");
  const query = (name: string): string => url.searchParams.get(name) ?? "";
  if (url.pathname === "/hostname") response.end(hostname());
  else if (url.pathname === "/clientip") response.end(request.socket.remoteAddress);
  else if (url.pathname === "/healthz") {
    response.writeHead(performance.now() - began > healthyMs ? 500 : 200).end("ok");
  } else if (url.pathname === "/redirect") {
    response.writeHead(302, { location: query("to") }).end();
  } else if (url.pathname === "/set") {
    stored.set(query("key"), query("value"));
    // The servers that serve copies to readers.
    const copies = query("copies")
      .split(",")
      .filter((host) => host !== "");
    for (const host of copies) await read(`http://${host}/set?key=${query("key")}&value=${query("value")}`);
    response.end("stored");
  } else if (url.pathname === "/get") response.end(stored.get(query("key")) ?? "");
  else if (url.pathname === "/fetch") response.end(await read(query("url")));
  else if (url.pathname === "/dial") {
    response.end(await exchange(query("host"), Number(query("port")), "hostname"));
  } else {
    response.setHeader("x-method", request.method ?? "");
    response.end(JSON.stringify({ method: request.method, path: request.url, host: hostname() }));
  }
}

createHttpServer((request, response) => {
  respond(request, response).catch((error: Error) => response.writeHead(502).end(error.message));
}).listen(portOf("http", 8080));

createServer((socket) => {
  socket.on("error", () => socket.destroy());
  socket.end(`${hostname()}\n`);
}).listen(portOf("tcp", 8082));

const udp = createSocket("udp4");
udp.on("message", (_, { address, port }) => udp.send(`${hostname()}\n`, port, address));
udp.bind(portOf("udp", 8081));

for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => process.exit(0));
