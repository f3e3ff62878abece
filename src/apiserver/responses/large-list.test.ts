/** Lists that are sent while they are encoded. */
import { buffer } from "node:stream/consumers";
import t from "tap";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import { createClient } from "../../client/api-client.ts";
import type { HttpResponse } from "../../http/message.ts";
import { bodyLength, isStreamed } from "../../http/server/write-body.ts";
import { create } from "../../registry/create.ts";
import { list } from "../../registry/list.ts";
import { escapeHtml } from "../../schema/json/html-escape.ts";
import { encodeYaml } from "../../schema/yaml/write-yaml.ts";
import { fixture } from "../../testing/registry/registry-fixture.ts";
import { listResponse } from "./object-response.ts";
import { encodeProtobufList } from "./protobuf.ts";
import type { Representation } from "./representation.ts";

const VALUE = "x".repeat(500_000);
const typeMeta = { kind: "ConfigMap", apiVersion: "v1" };
const json: Representation = {
  format: "json",
  mediaType: "application/json",
  magic: "k8s",
  as: "object",
  isListMetadata: false,
  metaVersion: "meta.k8s.io/v1",
  pretty: false,
};
const protobuf: Representation = { ...json, format: "protobuf", mediaType: "application/vnd.kubernetes.protobuf" };
const table = { includeObject: "Metadata" as const, now: 0 };

async function setUp(count: number, data: Readonly<Record<string, string>> = { text: VALUE }) {
  const parts = fixture();
  const registry = parts.registries.of(configMapKind);
  const names = Array.from({ length: count }, (_, i) => `large-${i}`);
  for (const name of names) await create(registry, parts.scope(), { metadata: { name }, data });
  const page = await list(registry, parts.scope());
  const respond = (representation: Representation) =>
    listResponse(configMapKind, page, { typeMeta, representation, table });
  return { ...parts, page, respond };
}

t.test("a large list is encoded while it is sent, with the same bytes", async (t) => {
  await using f = await setUp(12);
  const { items, revision } = f.page;
  const asJson = f.respond(json);
  t.ok(isStreamed(asJson.body) && asJson.finite);
  const parsed = JSON.parse((await buffer(asJson.body as AsyncIterable<Uint8Array>)).toString());
  t.match(parsed, { kind: "ConfigMapList", apiVersion: "v1", metadata: { resourceVersion: String(revision) } });
  t.same(
    parsed.items,
    items.map(({ bytes }) => JSON.parse(bytes.toString())),
  );
  const asProtobuf = f.respond(protobuf);
  t.ok(isStreamed(asProtobuf.body) && asProtobuf.finite);
  const objects = items.map(({ object }) => object);
  const metadata = { resourceVersion: String(revision) };
  const whole = encodeProtobufList(
    "k8s",
    { kind: "ConfigMapList", apiVersion: "v1" },
    configMapKind,
    metadata,
    objects,
  );
  t.ok((await buffer(asProtobuf.body as AsyncIterable<Uint8Array>)).equals(whole));
});

t.test("a client in the same process reads a large list without its bytes", async (t) => {
  await using f = await setUp(3);
  const read = (respond: () => Promise<HttpResponse>) => createClient({ transport: respond }).list(configMapKind);
  const local = await read(async () => f.respond(json));
  const bytes = await buffer(f.respond(json).body as AsyncIterable<Uint8Array>);
  t.same(local, await read(async () => ({ ...f.respond(json), body: bytes })));
  t.ok(
    local.items.every(({ data }, index) => data === f.page.items[index]?.object.data),
    "the objects of the cache",
  );
});

t.test("a large list in YAML or indented JSON is encoded item by item, with the same bytes", async (t) => {
  const data = {
    text: VALUE,
    lines: "one\n  two\n",
    "a.b": '<&> "quoted": é\u2028',
    empty: "",
    number: "1",
    space: " x ",
  };
  await using f = await setUp(12, data);
  const whole = JSON.parse((await buffer(f.respond(json).body as AsyncIterable<Uint8Array>)).toString()) as object;
  for (const [how, expected] of [
    [{ format: "yaml" }, encodeYaml(whole)],
    [{ pretty: true }, escapeHtml(JSON.stringify(whole, undefined, 2))],
  ] as const) {
    const { body, finite } = f.respond({ ...json, ...how });
    t.ok(isStreamed(body) && finite);
    t.ok((await buffer(body as AsyncIterable<Uint8Array>)).equals(Buffer.from(expected)), JSON.stringify(how));
  }
});

t.test("a list that would be in memory as a whole is refused when it is too large", async (t) => {
  await using f = await setUp(70);
  t.throws(() => f.respond({ ...json, format: "cbor" }), { code: 413 });
  for (const how of [{ format: "yaml" }, { pretty: true }] as const) {
    t.ok(isStreamed(f.respond({ ...json, ...how }).body), "as a stream it is never too large");
  }
  // Rows and metadata are small.
  for (const as of ["table", "metadata"] as const) {
    t.ok((bodyLength(f.respond({ ...json, as, isListMetadata: as === "metadata" }).body) ?? 0) < 100_000, as);
  }
});
