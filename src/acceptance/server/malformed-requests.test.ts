/** Malformed requests get a 4xx with a Status, over HTTP/1.1 and HTTP/2, and have no effect. */
import { connect } from "node:http2";
import { request } from "node:https";
import t from "tap";
import { listen } from "../../http/server/server.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { makeServerCertificate } from "../../testing/http/test-certificates.ts";

const MAPS = "/api/v1/namespaces/default/configmaps";
const MERGE = "application/merge-patch+json";
const YAML = "application/yaml";
const PROTOBUF = "application/vnd.kubernetes.protobuf";
const whole = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"k":"v"}}';
const large = Buffer.alloc(10 * 1024 * 1024, 0x20);
const bomb = `a: &a [${"x,".repeat(9)}x]\n${["b", "c", "d", "e", "f", "g", "h"]
  .map((name, index) => `${name}: &${name} [${`*${"abcdefgh"[index]},`.repeat(9)}x]`)
  .join("\n")}`;

interface Case {
  readonly what: string;
  readonly line: string;
  readonly type?: string;
  readonly body: string | Buffer;
  readonly code: number;
  readonly message: RegExp;
}

const create = (
  what: string,
  body: string | Buffer,
  code: number,
  message: RegExp,
  type = "application/json",
): Case => {
  return { what, line: `POST ${MAPS}`, type, body, code, message };
};

const cases: readonly Case[] = [
  create("truncated JSON", whole.slice(0, -3), 400, /unexpected end of JSON input/),
  create("nothing", "", 400, /unexpected end of JSON input/),
  create("deep JSON", `{"data":${"[".repeat(100_000)}`, 400, /nested deeper/),
  create("deep objects", `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`, 400, /nested deeper/),
  create("10 MB", large, 413, /^Request entity too large: limit is 3145728$/),
  create("a list", "[]", 400, /cannot unmarshal array/),
  create("a kind that is a number", '{"kind":5}', 400, /cannot unmarshal number/),
  create("a wrong type", '{"metadata":{"name":"x"},"data":{"k":1}}', 400, /cannot unmarshal number .* of type string/),
  create(
    "a prototype for metadata",
    '{"__proto__":{"metadata":{"name":"x"}}}',
    422,
    /name or generateName is required/,
  ),
  create("bytes that are no JSON", Buffer.from([0xff, 0xfe, 0x00]), 400, /invalid character 'ÿ'/),
  create("a number beyond all", '{"metadata":{"generation":1e400}}', 400, /cannot unmarshal number/),
  create("no media type there is", whole, 415, /unknown format/, "application/x-nothing"),
  create("broken YAML", "a: b: c", 400, /mapping values are not allowed/, YAML),
  create("YAML that is no UTF-8", Buffer.from([0x61, 0xff]), 400, /invalid leading UTF-8 octet/, YAML),
  create("a YAML bomb", bomb, 400, /excessive aliasing/, YAML),
  create("deep YAML", "- ".repeat(10_000), 400, /maxDepth/, YAML),
  create("protobuf without magic", "hello", 400, /does not appear to be a protobuf message/, PROTOBUF),
  create("truncated protobuf", Buffer.from("k8s\0\n\x7fabc"), 400, /unexpected EOF/, PROTOBUF),
  {
    what: "a broken patch",
    line: "PATCH /api/v1/namespaces/default",
    type: MERGE,
    body: "{",
    code: 400,
    message: /unexpected end/,
  },
  {
    what: "a list for a patch",
    line: "PATCH /api/v1/namespaces/default",
    type: MERGE,
    body: "[]",
    code: 400,
    message: /unmarshal array/,
  },
  { what: "no patch type", line: "PATCH /api/v1/namespaces/default", body: "{}", code: 415, message: /415/ },
  { what: "a path that climbs", line: `GET ${MAPS}/..%2f..`, body: "", code: 404, message: /could not find/ },
  { what: "a query that is no number", line: `GET ${MAPS}?limit=x`, body: "", code: 400, message: /strconv\.ParseInt/ },
];

interface Answered {
  readonly code: number;
  readonly text: string;
}

type Send = (one: Case, token: string) => Promise<Answered>;

function overHttp1(port: number): Send {
  return async ({ line, type = "application/json", body }, token) => {
    const { promise, resolve, reject } = Promise.withResolvers<Answered>();
    const [method, path] = line.split(" ");
    const headers = { authorization: `Bearer ${token}`, "content-type": type, connection: "close" };
    const sending = request(
      { host: "127.0.0.1", port, method, path, headers, rejectUnauthorized: false },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => (text += chunk));
        response.on("end", () => resolve({ code: response.statusCode ?? 0, text }));
      },
    );
    sending.on("error", reject);
    sending.end(method === "GET" ? undefined : body);
    return await promise;
  };
}

function overHttp2(port: number): Send {
  return async ({ line, type = "application/json", body }, token) => {
    const { promise, resolve, reject } = Promise.withResolvers<Answered>();
    const [method, path] = line.split(" ");
    const session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
    session.on("error", reject);
    const headers = { ":method": method, ":path": path, authorization: `Bearer ${token}`, "content-type": type };
    const sending = session.request(headers);
    let code = 0;
    let text = "";
    sending.setEncoding("utf8");
    sending.on("response", (response) => {
      code = Number(response[":status"]);
    });
    sending.on("data", (chunk: string) => (text += chunk));
    sending.on("close", () => {
      session.close();
      resolve({ code, text });
    });
    sending.on("error", reject);
    sending.end(method === "GET" ? undefined : body);
    return await promise;
  };
}

for (const [protocol, over] of [["HTTP/1.1", overHttp1] as const, ["HTTP/2", overHttp2] as const]) {
  t.test(`malformed requests over ${protocol} get a 4xx with the reason`, async (t) => {
    await using server = await startTestServer();
    const { handler, loopbackToken } = server.parts.server;
    const token = loopbackToken({ name: "admin", uid: "1", groups: ["system:masters"], extra: {} });
    const { server: certificate } = await makeServerCertificate();
    const tls = { cert: certificate.cert, key: certificate.key };
    const listener = await listen({ handler, log: silentLogger, clock: systemClock, host: "127.0.0.1", port: 0, tls });
    t.teardown(() => listener.close(0));
    const send = over(listener.port);
    for (const one of cases) {
      const { code, text } = await send(one, token);
      t.equal(code, one.code, one.what);
      t.match(JSON.parse(text), { kind: "Status", status: "Failure", code: one.code, message: one.message }, one.what);
    }
    t.equal((await server.send(`GET ${MAPS}`)).json.items.length, 0, "nothing was made");
    t.equal(({} as { readonly metadata?: unknown }).metadata, undefined, "no prototype was reached");
  });
}
