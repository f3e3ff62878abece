/** The extension server of `recorded-apiserver-more/aggregation.jsonl`: it responds with what it received. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { TestCertificate } from "../../testing/http/test-certificates.ts";

export interface RecordedBackend extends AsyncDisposable {
  readonly port: number;
}

const REPORTED = /^(?:x-remote-|x-forwarded-|impersonate-)/;
const REPORTED_NAMES = [
  "user-agent",
  "audit-id",
  "authorization",
  "accept",
  "content-type",
  "x-custom",
  "x-request-id",
];

export async function startRecordedBackend({
  cert,
  key,
}: Pick<TestCertificate, "cert" | "key">): Promise<RecordedBackend> {
  const server = createServer({ cert, key, requestCert: true, rejectUnauthorized: false }, (request, response) => {
    void respond(request, response);
  });
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: () => closeServer(server, sockets),
  };
}

async function closeServer(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  for (const socket of sockets) socket.destroy();
  await closed;
}

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, search } = new URL(request.url ?? "/", "https://back");
  const [, prefix, group = "", version, ...rest] = pathname.split("/");
  const send = (code: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    response.writeHead(code, { "content-type": "application/json", ...headers }).end(text);
  };
  if (prefix !== "apis" || group === "" || version === undefined) return send(404, "not found");
  if (rest.length === 0) {
    if (group.startsWith("down")) return send(500, "broken");
    if (group.startsWith("forbid")) return send(403, "forbidden");
    const widgets = {
      name: "widgets",
      singularName: "widget",
      namespaced: true,
      kind: "Widget",
      verbs: ["get", "list"],
    };
    const list = {
      kind: "APIResourceList",
      apiVersion: "v1",
      groupVersion: `${group}/${version}`,
      resources: [widgets],
    };
    return send(200, list);
  }
  switch (rest.at(-1)) {
    case "teapot":
      return send(418, { says: "teapot" }, { "x-backend": "yes", warning: '299 - "from the backend"' });
    case "move":
      return send(302, "", { location: "/elsewhere" });
    case "drop":
      request.socket.destroy();
      return;
    default:
  }
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const certificate = (request.socket as TLSSocket).getPeerCertificate();
  const headers = Object.entries(request.headers).filter(
    // The test server's requests have a content type even without a body.
    ([name]) =>
      REPORTED.test(name) || (REPORTED_NAMES.includes(name) && (name !== "content-type" || chunks.length > 0)),
  );
  send(200, {
    method: request.method,
    path: pathname,
    query: search,
    clientCertificate: certificate.subject?.CN ?? null,
    host: (request.headers.host ?? "").replace(/\d+$/, "<port>"),
    headers: Object.fromEntries(headers.sort(([a], [b]) => (a < b ? -1 : 1))),
    body: Buffer.concat(chunks).toString(),
  });
}
