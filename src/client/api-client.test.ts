import t from "tap";
import { leaseKind } from "../api/coordination/lease/kind.ts";
import { configMapKind } from "../api/core/config-map/kind.ts";
import { namespaceKind } from "../api/core/namespace/kind.ts";
import type { ApiObject, Kind } from "../api/kind.ts";
import { readBody } from "../http/body.ts";
import type { HttpResponse } from "../http/message.ts";
import { bytesResponse, jsonResponse, textResponse } from "../http/respond.ts";
import { createValueStream } from "../http/value-stream.ts";
import { decodeCbor } from "../schema/cbor/decode.ts";
import { encodeCborValue } from "../schema/cbor/encode.ts";
import { decodeProtobuf } from "../schema/protobuf/decode.ts";
import { decodeEnvelope } from "../schema/protobuf/envelope.ts";
import { createClient } from "./api-client.ts";
import { metadataOnly } from "./metadata-only.ts";

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly type: string | undefined;
  readonly body: unknown;
}

/** A server with scripted responses, which records requests. */
function script(...answers: readonly HttpResponse[]) {
  const seen: Seen[] = [];
  let next = 0;
  const client = createClient({
    headers: { authorization: "Bearer x" },
    transport: async (request) => {
      const body = (await readBody(request, 1_000_000)).toString();
      const { method, path, query, headers } = request;
      seen.push({
        method,
        path,
        query,
        type: headers["content-type"],
        body: body === "" ? undefined : JSON.parse(body),
      });
      return answers[next++] ?? textResponse(500, "unexpected");
    },
  });
  return { client, seen };
}

const map = { metadata: { name: "a", namespace: "ns", resourceVersion: "5" }, data: { k: "v" } };
const notFound = (name?: string) =>
  jsonResponse(404, {
    kind: "Status",
    code: 404,
    reason: "NotFound",
    message: "gone",
    ...(name === undefined ? {} : { details: { name } }),
  });

t.test("createClient() builds paths, queries, media types and bodies of the API", async (t) => {
  const answers = Array.from({ length: 7 }, () => jsonResponse(200, { ...map, kind: "ConfigMap", apiVersion: "v1" }));
  const { client, seen } = script(...answers);
  const name = { name: "a", namespace: "ns" };
  const found = await client.get(configMapKind, name);
  t.match(found, { kind: "ConfigMap", apiVersion: "v1", data: { k: "v" } });
  await client.create(configMapKind, map);
  await client.update(configMapKind, map);
  await client.updateStatus(namespaceKind, { metadata: { name: "ns" } });
  await client.patch(configMapKind, name, "strategic", { data: { k: null } });
  await client.delete(configMapKind, name, { gracePeriodSeconds: 0 });
  await client.createSubresource(configMapKind, name, "binding", { a: 1 });
  const base = "/api/v1/namespaces/ns/configmaps";
  t.match(seen, [
    { method: "GET", path: `${base}/a`, query: "", body: undefined },
    {
      method: "POST",
      path: base,
      type: "application/json",
      body: { kind: "ConfigMap", apiVersion: "v1", data: { k: "v" } },
    },
    { method: "PUT", path: `${base}/a` },
    { method: "PUT", path: "/api/v1/namespaces/ns/status" },
    { method: "PATCH", path: `${base}/a`, type: "application/strategic-merge-patch+json", body: { data: { k: null } } },
    { method: "DELETE", path: `${base}/a`, body: { kind: "DeleteOptions", apiVersion: "v1", gracePeriodSeconds: 0 } },
    { method: "POST", path: `${base}/a/binding`, body: { a: 1 } },
  ]);
});

t.test("createClient() sends objects with the configured content type, and with the next after a 415", async (t) => {
  const object = { metadata: { name: "a", namespace: "ns" }, data: { k: "v" } };
  const sent: string[] = [];
  const client = createClient({
    contentType: "application/vnd.svc.protobuf",
    transport: async (request) => {
      const type = request.headers["content-type"] ?? "";
      sent.push(type);
      const bytes = await readBody(request, 1_000_000);
      if (type === "application/vnd.svc.protobuf") return jsonResponse(415, { kind: "Status", code: 415, reason: "" });
      const { magic, apiVersion, kind, raw } = decodeEnvelope(bytes);
      t.strictSame({ magic, apiVersion, kind }, { magic: "k8s", apiVersion: "v1", kind: "ConfigMap" });
      return jsonResponse(201, { ...decodeProtobuf(configMapKind.schema, raw), kind, apiVersion });
    },
  });
  t.match(await client.create(configMapKind, object), object);
  t.match(await client.update(configMapKind, object), object);
  const [own, kubernetes] = ["application/vnd.svc.protobuf", "application/vnd.kubernetes.protobuf"];
  t.strictSame(sent, [own, kubernetes, kubernetes]);
});

t.test("createClient() rejects names that would change the path", async (t) => {
  const { client, seen } = script(jsonResponse(200, map));
  await client.get(configMapKind, { name: "../secrets?x", namespace: "a/b" });
  t.equal(seen[0]?.path, "/api/v1/namespaces/a%2Fb/configmaps/..%2Fsecrets%3Fx");
  for (const name of ["", ".", ".."])
    await t.rejects(client.get(configMapKind, { name, namespace: "n" }), { message: /as a name/ });
});

t.test("createClient().list() sets the kind of items and returns the revision", async (t) => {
  const { client, seen } = script(
    jsonResponse(200, { kind: "ConfigMapList", metadata: { resourceVersion: "9", continue: "more" }, items: [map] }),
    jsonResponse(200, { metadata: { resourceVersion: "10" }, items: null }),
  );
  const list = await client.list(configMapKind, {
    namespace: "ns",
    labelSelector: "a=b,c",
    limit: 5,
    resourceVersion: "0",
  });
  t.match(list, {
    resourceVersion: "9",
    continue: "more",
    items: [{ kind: "ConfigMap", apiVersion: "v1", data: { k: "v" } }],
  });
  t.equal(seen[0]?.query, "labelSelector=a%3Db%2Cc&limit=5&resourceVersion=0");
  t.strictSame(await client.list(configMapKind), { items: [], resourceVersion: "10" });
  t.equal(seen[1]?.path, "/api/v1/configmaps");
});

t.test("createClient() throws StatusErrors for all responses that are not 2xx", async (t) => {
  const odd: readonly (readonly [HttpResponse, object])[] = [
    [notFound("a"), { message: "gone", status: { code: 404, reason: "NotFound", details: { name: "a" } } }],
    [
      textResponse(503, "no healthy upstream", { "retry-after": "7" }),
      { status: { code: 503, reason: "ServiceUnavailable", details: { retryAfterSeconds: 7 } } },
    ],
    [jsonResponse(500, { kind: "Status", code: "500" }), { status: { code: 500 } }],
    [
      jsonResponse(409, {
        kind: "Status",
        code: 409,
        reason: 5,
        message: null,
        details: { causes: [null, "x", { field: "f" }] },
      }),
      { status: { code: 409 }, message: "the server answered with code 409" },
    ],
    [textResponse(302, ""), { status: { code: 302 }, message: "the server answered with code 302" }],
    [jsonResponse(200, { metadata: 5 }), { message: /^Cannot decode a ConfigMap/ }],
    [textResponse(200, "<html>"), { message: /^Cannot read the response of the server/ }],
  ];
  for (const [answer, expected] of odd) {
    const failure = await script(answer)
      .client.get(configMapKind, { name: "a", namespace: "n" })
      .catch((error: unknown) => error);
    t.match(failure, { name: "StatusError", ...expected });
  }
});

t.test("createClient() falls back to the Kubernetes name of a group, and keeps it", async (t) => {
  // Servers authorize a request before they look for its group.
  for (const missing of [textResponse(404, "404 page not found"), jsonResponse(403, { kind: "Status", code: 403 })]) {
    const lease = { metadata: { name: "n", namespace: "ns" } };
    const { client, seen } = script(
      missing,
      textResponse(404, "404 page not found"),
      jsonResponse(200, { kind: "APIResourceList" }),
      jsonResponse(200, { ...lease, apiVersion: "coordination.k8s.io/v1" }),
      jsonResponse(201, lease),
    );
    const found = await client.get(leaseKind, { name: "n", namespace: "ns" });
    t.equal(found.apiVersion, "coordination.svc.io/v1", "objects have the svc.io group");
    await client.create(leaseKind, lease);
    t.strictSame(
      seen.map(({ method, path }) => `${method} ${path}`),
      [
        "GET /apis/coordination.svc.io/v1/namespaces/ns/leases/n",
        "GET /apis/coordination.svc.io/v1",
        "GET /apis/coordination.k8s.io/v1",
        "GET /apis/coordination.k8s.io/v1/namespaces/ns/leases/n",
        "POST /apis/coordination.k8s.io/v1/namespaces/ns/leases",
      ],
    );
    t.match(seen[4]?.body, { apiVersion: "coordination.k8s.io/v1" });
  }
});

t.test(
  "createClient() reports missing permission for a served group, and for one that it cannot discover",
  async (t) => {
    const forbidden = () => jsonResponse(403, { kind: "Status", code: 403, message: "no" });
    for (const discovery of [[jsonResponse(200, { kind: "APIResourceList" })], [forbidden(), forbidden()]]) {
      const { client } = script(forbidden(), ...discovery);
      await t.rejects(client.get(leaseKind, { name: "n", namespace: "ns" }), { message: "no" });
    }
  },
);

t.test("createClient() discovers a group once, and not for a missing object of a served group", async (t) => {
  const { client, seen } = script(notFound("n"), jsonResponse(200, { kind: "APIResourceList" }), notFound("n"));
  const get = () => client.get(leaseKind, { name: "n", namespace: "ns" });
  await t.rejects(get(), { message: "gone" });
  await t.rejects(get(), { message: "gone" });
  t.equal(seen.length, 3);
});

t.test("createClient().watch() reads values of a server in the same process", async (t) => {
  const object = Object.freeze({ metadata: map.metadata, data: map.data });
  async function* values() {
    yield { type: "ADDED", object };
    yield { type: "BOOKMARK", object: { metadata: { resourceVersion: "7" } } };
    yield { type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired", message: "too old" } };
  }
  const frames = (): never => {
    throw new Error("what would only be decoded again was encoded");
  };
  const answer = () => ({ status: 200, headers: {}, body: createValueStream(frames, values) });
  const { client } = script(answer(), answer());
  const events: unknown[] = [];
  const read = async (kind: Kind<ApiObject>) => {
    for await (const event of client.watch(kind, {}, new AbortController().signal)) events.push(event);
  };
  const typed = { kind: "ConfigMap", apiVersion: "v1" };
  t.match(await read(configMapKind as Kind).catch((error: unknown) => error), { status: { code: 410 } });
  t.strictSame(events.splice(0), [
    { type: "ADDED", object: { ...object, ...typed } },
    { type: "BOOKMARK", resourceVersion: "7" },
  ]);
  t.match(await read(metadataOnly(configMapKind as Kind)).catch((error: unknown) => error), { status: { code: 410 } });
  t.strictSame(events[0], { type: "ADDED", object: { metadata: object.metadata, ...typed } });
});

/** A server that negotiates CBOR, or rejects it. */
function cborServer(supportsCbor: boolean, cbor: "accept" | "prefer") {
  const seen: (readonly [string, string | undefined, string | undefined])[] = [];
  const respond = (isCbor: boolean, status: number, value: unknown) =>
    isCbor ? bytesResponse(status, "application/cbor", encodeCborValue(value)) : jsonResponse(status, value);
  const client = createClient({
    cbor,
    transport: async ({ method, headers, body }) => {
      const type = headers["content-type"];
      seen.push([method, headers.accept, type]);
      const bytes = await readBody({ headers: {}, body }, 1_000_000);
      const isRead = type?.endsWith("cbor") !== true || supportsCbor;
      if (!isRead) return respond(false, 415, { kind: "Status", code: 415, message: "unsupported" });
      if (type === "application/cbor") decodeCbor(bytes);
      const accepted = headers.accept?.startsWith("application/cbor") === true && supportsCbor;
      if (method === "DELETE") return respond(accepted, 409, { kind: "Status", code: 409, message: "conflict" });
      return respond(accepted, 200, map);
    },
  });
  return { client, seen };
}

t.test("a client that accepts CBOR reads it, also errors, and sends JSON", async (t) => {
  const { client, seen } = cborServer(true, "accept");
  t.match(await client.create(configMapKind, map), { data: { k: "v" } });
  const failed = client.delete(configMapKind, { name: "a", namespace: "ns" });
  await t.rejects(failed, { name: "StatusError", status: { code: 409, message: "conflict" } });
  const metadata = metadataOnly(configMapKind as Kind);
  t.match(await client.get(metadata, { name: "a", namespace: "ns" }), { metadata: { name: "a" } });
  const accept = "application/cbor,application/json;q=0.9";
  const as = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
  t.same(seen, [
    ["POST", accept, "application/json"],
    ["DELETE", accept, "application/json"],
    ["GET", `application/cbor${as},application/json${as};q=0.9`, undefined],
  ]);
});

t.test("a client that prefers CBOR sends it, but no patches of JSON, and falls back on JSON after 415", async (t) => {
  const name = { name: "a", namespace: "ns" };
  const use = async ({ client, seen }: ReturnType<typeof cborServer>) => {
    await client.create(configMapKind, map);
    await client.patch(configMapKind, name, "merge", { data: { k: null } });
    await client.patch(configMapKind, name, "apply", map, { query: { fieldManager: "m" } });
    await client.createSubresource(configMapKind, name, "x", { a: 1 });
    return seen.map(([, , type]) => type);
  };
  const merge = "application/merge-patch+json";
  const supported = await use(cborServer(true, "prefer"));
  t.same(supported, ["application/cbor", merge, "application/apply-patch+cbor", "application/cbor"]);
  const unsupported = await use(cborServer(false, "prefer"));
  const json = ["application/json", merge, "application/apply-patch+yaml", "application/json"];
  t.same(unsupported, ["application/cbor", ...json]);
});

t.test("a watch in CBOR is read however its chunks are cut", async (t) => {
  const events = [
    { type: "ADDED", object: map },
    { type: "BOOKMARK", object: { metadata: { resourceVersion: "7" } } },
    { type: "DELETED", object: map },
  ];
  const bytes = Buffer.concat(events.map(encodeCborValue));
  for (const size of [1, 7, bytes.length]) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    );
    const transport = async () => bytesResponse(200, "application/cbor-seq", chunks);
    const client = createClient({ cbor: "accept", transport });
    const read: unknown[] = [];
    for await (const event of client.watch(configMapKind, {}, new AbortController().signal)) read.push(event);
    t.match(read, [{ type: "ADDED", object: map }, { resourceVersion: "7" }, { type: "DELETED" }], `${size}`);
  }
});

t.test("createClient().watch() reads events and rejects with the error of the server", async (t) => {
  const event = (type: string, object: unknown) => `${JSON.stringify({ type, object })}\n`;
  const stream = (...texts: string[]) =>
    bytesResponse(
      200,
      "application/json",
      texts.map((text) => Buffer.from(text)),
    );
  const { client, seen } = script(
    stream(
      event("ADDED", map),
      event("BOOKMARK", { metadata: { resourceVersion: "7" } }),
      event("DELETED", map),
      event("ERROR", { kind: "Status", code: 410, reason: "Expired", message: "too old" }),
    ),
    stream("nonsense\n"),
    stream(event("OTHER", {})),
    stream(event("ERROR", "what")),
  );
  const types: string[] = [];
  const read = async () => {
    const { signal } = new AbortController();
    for await (const { type } of client.watch(
      configMapKind,
      { namespace: "ns", resourceVersion: "5", allowWatchBookmarks: true },
      signal,
    )) {
      types.push(type);
    }
  };
  const gone = await read().catch((error: unknown) => error);
  t.match(gone, { name: "StatusError", status: { code: 410 } });
  t.strictSame(types, ["ADDED", "BOOKMARK", "DELETED"]);
  t.equal(seen[0]?.query, "resourceVersion=5&allowWatchBookmarks=true&watch=true");
  await t.rejects(read(), { message: /^Cannot read a watch event/ });
  await t.rejects(read(), { message: /type "OTHER"/ });
  await t.rejects(read(), { message: /without a reason/ });
});
