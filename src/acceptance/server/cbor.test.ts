import t from "tap";
import { decodeCbor } from "../../schema/cbor/decode.ts";
import { encodeCborValue } from "../../schema/cbor/encode.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";

const SECRETS = "/api/v1/namespaces/default/secrets";
const CBOR = { accept: "application/cbor", "content-type": "application/cbor" };

t.test(
  "with the feature gate the server accepts and returns CBOR: objects, lists, tables, applies and watches",
  async (t) => {
    await using server = await startTestServer({ cbor: true });
    const body = encodeCborValue({ metadata: { name: "a" }, data: { k: "dmFsdWU=" } });
    const created = await server.send(`POST ${SECRETS}`, { body, headers: CBOR });
    t.same([created.status, created.headers["content-type"]], [201, "application/cbor"]);
    t.match(decodeCbor(created.bytes), { kind: "Secret", apiVersion: "v1", data: { k: "dmFsdWU=" } });
    const list = await server.send(`GET ${SECRETS}`, { headers: CBOR });
    t.match(decodeCbor(list.bytes), {
      kind: "SecretList",
      items: [{ metadata: { name: "a" }, data: { k: "dmFsdWU=" } }],
    });
    const as = { accept: "application/cbor;as=Table;v=v1;g=meta.k8s.io" };
    t.match(decodeCbor((await server.send(`GET ${SECRETS}`, { headers: as })).bytes), { kind: "Table" });
    const apply = { ...CBOR, "content-type": "application/apply-patch+cbor" };
    const wanted = encodeCborValue({ apiVersion: "v1", kind: "Secret", metadata: { name: "a", labels: { x: "y" } } });
    const applied = await server.send(`PATCH ${SECRETS}/a?fieldManager=me`, { body: wanted, headers: apply });
    t.match(decodeCbor(applied.bytes), { metadata: { labels: { x: "y" } } });
    const watch = await server.open(`GET ${SECRETS}?watch=1`, { headers: CBOR });
    t.equal(watch.headers["content-type"], "application/cbor-seq");
    for await (const chunk of watch.body as AsyncIterable<Uint8Array>) {
      t.match(decodeCbor(chunk), { type: "ADDED", object: { kind: "Secret", data: { k: "dmFsdWU=" } } });
      break;
    }
    const wrong = await server.send(`POST ${SECRETS}`, { body: "x", headers: { "content-type": "application/cbor" } });
    t.match(wrong.json, { code: 400, message: /^the object provided is unrecognized \(must be of type Secret\): / });
  },
);

t.test("without the feature gate CBOR gets 406 and 415", async (t) => {
  await using server = await startTestServer();
  t.equal((await server.send(`GET ${SECRETS}`, { headers: { accept: "application/cbor" } })).status, 406);
  const body = encodeCborValue({ metadata: { name: "a" } });
  t.equal(
    (await server.send(`POST ${SECRETS}`, { body, headers: { "content-type": "application/cbor" } })).status,
    415,
  );
});
