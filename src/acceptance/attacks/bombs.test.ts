/** Small inputs with a high cost: each is refused or processed within a time limit. */
import { gzipSync } from "node:zlib";
import t from "tap";
import { encodeEnvelope } from "../../schema/protobuf/envelope.ts";
import {
  type RequestOptions,
  startTestServer,
  type TestResponse,
  type TestServer,
} from "../../testing/apiserver/server-fixture.ts";

const MAPS = "/api/v1/namespaces/default/configmaps";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/** CPU time, since the machine may be busy. Generous: an exponential algorithm takes minutes. */
const MS_MAX = 3000;

async function sendInTime(
  server: TestServer,
  what: string,
  line: string,
  options: RequestOptions = {},
): Promise<TestResponse> {
  const began = process.cpuUsage();
  const response = await server.send(line, options);
  const { user, system } = process.cpuUsage(began);
  const took = (user + system) / 1000;
  if (took > MS_MAX) throw new Error(`${what} took ${Math.round(took)} ms`);
  return response;
}

const definition = (plural: string, spec: object) => ({
  metadata: { name: `${plural}.shop.example` },
  spec: {
    group: "shop.example",
    scope: "Namespaced",
    names: { plural, kind: `K${plural}` },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", properties: { spec } } },
      },
    ],
  },
});

/** Patterns that take a backtracking matcher exponential time. */
const PATTERNS = [".".repeat(20_000), "^(a+)+$", "^(a|aa)+$", "^(a|a?)+$", "^(.*a){25}$", "^([a-zA-Z]+)*$", "(x+x+)+y"];

t.test("patterns of a custom resource match in time linear in the text", async (t) => {
  await using server = await startTestServer();
  const properties = Object.fromEntries(PATTERNS.map((pattern, index) => [`p${index}`, { type: "string", pattern }]));
  const created = await sendInTime(server, "definition", `POST ${CRDS}`, {
    body: definition("patterns", { type: "object", properties }),
  });
  t.equal(created.status, 201);
  const path = "/apis/shop.example/v1/namespaces/default/patterns";
  for (let attempt = 0; attempt < 200 && (await server.send(`GET ${path}`)).status !== 200; attempt++)
    await new Promise(setImmediate);
  const texts = Object.fromEntries(PATTERNS.map((_, index) => [`p${index}`, `${"a".repeat(10_000)}!`]));
  const body = { apiVersion: "shop.example/v1", kind: "Kpatterns", metadata: { name: "x" }, spec: texts };
  const response = await sendInTime(server, "object", `POST ${path}`, { body });
  t.equal(response.status, 422);
});

function loops(head: string, depth: number): string {
  return Array.from({ length: depth }, (_, i) => head.replace("X", `x${i}`)).join("");
}

t.test("a definition whose patterns or CEL rules exceed their cost limit gets 422", async (t) => {
  await using server = await startTestServer();
  const text = { type: "string" };
  const rule = (each: string, more: object = text) => ({ ...more, "x-kubernetes-validations": [{ rule: each }] });
  const list = { type: "array", items: { type: "array", items: { type: "string" } } };
  const bad: Readonly<Record<string, object>> = {
    "a pattern that repeats without end": { ...text, pattern: "((a{1000}){1000}){1000}" },
    "a small pattern that compiles to a large program": { ...text, pattern: ".{1000}".repeat(500) },
    "a pattern of look-behinds": { ...text, pattern: "(?<=a)b" },
    "a pattern with a back-reference": { ...text, pattern: "(a)\\1" },
    "a rule with loops in loops over the list": rule("self.all(a, self.all(b, self.all(c, a == b || b == c)))", list),
    "a rule that matches each string": rule("self.all(a, a.all(b, b.matches('(a+)+$')))", list),
    "a rule of too many words": rule(`${"self == 'x' || ".repeat(10_000)}true`),
    "a rule too deep": rule(`${"(".repeat(5000)}true${")".repeat(5000)}`),
    "a rule with nine nested loops": rule(`${loops("[0,1,2,3,4,5,6,7,8,9].all(X, ", 9)}true${")".repeat(9)}`),
  };
  for (const [what, spec] of Object.entries(bad)) {
    const response = await sendInTime(server, what, `POST ${CRDS}`, { body: definition("bad", spec) });
    t.equal(response.status, 422, `${what}: ${response.text.slice(0, 200)}`);
  }
  const deep = `${'{"type":"object","properties":{"a":'.repeat(5000)}{"type":"string"}${"}}".repeat(5000)}`;
  const body = JSON.stringify(definition("deep", {})).replace('"spec":{}', `"spec":${deep}`);
  const response = await sendInTime(server, "depth", `POST ${CRDS}`, { body });
  t.ok(response.status >= 400 && response.status < 500, `a schema too deep: ${response.status}`);
});

t.test("compressed, recursive and deeply nested bodies get a 4xx status within the time limit", async (t) => {
  await using server = await startTestServer();
  const map = JSON.stringify({ metadata: { name: "x" }, data: { k: " ".repeat(2 ** 20) } });
  const gzip = { "content-encoding": "gzip" };
  const bomb = gzipSync(Buffer.alloc(50 * 2 ** 20, 0x20));
  t.equal((await sendInTime(server, "gzip", `POST ${MAPS}`, { body: gzipSync(map), headers: gzip })).status, 400);
  t.equal((await sendInTime(server, "gzip bomb", `POST ${MAPS}`, { body: bomb, headers: gzip })).status, 400);
  const yaml = { "content-type": "application/yaml" };
  const aliases = Array.from({ length: 30 }, (_, i) => `a${i + 1}: &b${i + 1} [${`*b${i},`.repeat(9)}1]`).join("\n");
  const bodies: Readonly<Record<string, string>> = {
    "aliases of aliases": `a0: &b0 [1]\n${aliases}`,
    "an alias of itself": "a: &a [*a]",
    "a merge of itself": "a: &a {<<: *a}",
    "merges of merges": `a0: &b0 {x: 1}\n${Array.from({ length: 30 }, (_, i) => `a${i + 1}: &b${i + 1} {<<: [${`*b${i},`.repeat(9)}*b${i}]}`).join("\n")}`,
    depth: "[".repeat(100_000),
    "mappings in mappings": `${"{a: ".repeat(50_000)}1`,
    "a tag that would run": "!!js/function 'function () { return 1 }'",
    "many documents": "---\na: 1\n".repeat(50_000),
    "a key of keys": `? ${"? ".repeat(20_000)}a`,
  };
  for (const [what, body] of Object.entries(bodies)) {
    const { status } = await sendInTime(server, what, `POST ${MAPS}`, { body, headers: yaml });
    t.ok([400, 413, 422].includes(status), `${what}: ${status}`);
  }
  const quantities = ["1e999999999", `1${"0".repeat(500_000)}x`, `0.${"0".repeat(500_000)}1`, `1e${"9".repeat(1000)}`];
  for (const memory of quantities) {
    const spec = { containers: [{ name: "c", image: "i", resources: { limits: { memory } } }] };
    const body = { metadata: { name: "quantity" }, spec };
    const { status } = await sendInTime(server, "a quantity", "POST /api/v1/namespaces/default/pods", { body });
    t.equal(status, 400, `a quantity of ${memory.slice(0, 20)}`);
  }
  const patches = [{ op: "add", path: "/data", value: { k: "x".repeat(1000) } }];
  for (let copy = 0; copy < 40; copy++) patches.push({ op: "copy", from: "/data", path: `/data/c${copy}` } as never);
  await server.send(`POST ${MAPS}`, { body: { metadata: { name: "small" }, data: {} } });
  const type = { "content-type": "application/json-patch+json" };
  const doubled = await sendInTime(server, "a JSON patch that doubles", `PATCH ${MAPS}/small`, {
    body: patches,
    headers: type,
  });
  t.ok(doubled.status >= 400 && doubled.status < 500, `a JSON patch that doubles: ${doubled.status}`);
  const many = Array.from({ length: 20_000 }, () => ({ op: "test", path: "/kind", value: "ConfigMap" }));
  t.equal((await sendInTime(server, "many patches", `PATCH ${MAPS}/small`, { body: many, headers: type })).status, 413);
});

t.test("long and malformed queries get a response within the time limit", async (t) => {
  await using server = await startTestServer();
  const long = (text: string, count = 20_000): string => encodeURIComponent(Array(count).fill(text).join(","));
  const queries: Readonly<Record<string, string>> = {
    "many labels": `labelSelector=${long("a=b")}`,
    "many values": `labelSelector=${encodeURIComponent(`a in (${Array(20_000).fill("b").join(",")})`)}`,
    "many brackets": `labelSelector=${"(".repeat(50_000)}`,
    "many fields": `fieldSelector=${long("metadata.name=a")}`,
    "many escapes": `fieldSelector=metadata.name%3D${"%5C".repeat(50_000)}`,
    "a continue token that is not JSON": `continue=${"A".repeat(100_000)}`,
    "a forged continue token": `continue=${Buffer.from('{"v":"meta.k8s.io/v1","rv":-1,"start":"../../secrets/"}').toString("base64url")}&limit=1`,
    "a continue token of another collection": `continue=${Buffer.from('{"v":"meta.k8s.io/v1","rv":1,"start":"/../secrets/default/x"}').toString("base64url")}&limit=1`,
    "a limit of more than 64 bits": "limit=99999999999999999999",
    "a resourceVersion of more than 64 bits": "resourceVersion=99999999999999999999999",
    "a resourceVersion that is not a number": "resourceVersion=__proto__",
    "many parameters": Array(50_000).fill("a=b").join("&"),
  };
  for (const [what, query] of Object.entries(queries)) {
    const { status } = await sendInTime(server, what, `GET ${MAPS}?${query}`);
    t.ok(status < 500 || status === 504, `${what}: ${status}`);
    t.ok(status >= 400 || /^many/.test(what), `${what} gets an error: ${status}`);
  }
  const accepts = [
    "application/json;q=0.1,".repeat(20_000),
    "a/b;".repeat(20_000),
    ";".repeat(50_000),
    "*/".repeat(20_000),
  ];
  for (const accept of accepts) {
    const { status } = await sendInTime(server, "Accept", `GET ${MAPS}`, { headers: { accept } });
    t.ok(status < 500, `${status}`);
  }
});

/** Encodes a length-delimited protobuf field. */
function field(number: number, content: Uint8Array): Buffer {
  const varint = (value: number): number[] =>
    value < 128 ? [value] : [(value & 127) | 128, ...varint(Math.floor(value / 128))];
  return Buffer.concat([Buffer.from([...varint((number << 3) | 2), ...varint(content.length)]), content]);
}

t.test("protobuf and CBOR bodies with false lengths or deep nesting get a 4xx status in time", async (t) => {
  await using server = await startTestServer({ cbor: true });
  const nestedFields = (number: number, levels: number): Buffer => {
    let content: Buffer = Buffer.alloc(0);
    for (let level = 0; level < levels; level++) content = field(number, content);
    return content;
  };
  const envelopeOf = (kind: string, raw: Uint8Array, apiVersion = "v1") =>
    encodeEnvelope("k8s", { apiVersion, kind }, raw);
  // spec.versions[0].schema.openAPIV3Schema with nested `not`.
  const schema = field(2, field(7, field(4, field(1, nestedFields(28, 3000)))));
  const protobuf: Readonly<Record<string, Uint8Array>> = {
    "nested schemas": envelopeOf("CustomResourceDefinition", schema, "apiextensions.k8s.io/v1"),
    "nested fields": envelopeOf("ConfigMap", nestedFields(1, 5000)),
    "a length beyond the end": envelopeOf("ConfigMap", Buffer.from("0affffffff0f", "hex")),
    "a length of more than 64 bits": envelopeOf("ConfigMap", Buffer.from("0affffffffffffffffff01", "hex")),
    "groups that begin and never end": envelopeOf("ConfigMap", Buffer.alloc(100_000, 0x0b)),
    "a number without end": envelopeOf("ConfigMap", Buffer.alloc(100_000, 0xff)),
    "an envelope of zeros": Buffer.concat([Buffer.from("k8s\0"), Buffer.alloc(100_000)]),
    "no envelope": Buffer.from("k8s\0"),
  };
  for (const [what, body] of Object.entries(protobuf)) {
    const headers = { "content-type": "application/vnd.kubernetes.protobuf" };
    const path = what.includes("schema") ? CRDS : MAPS;
    const { status, text } = await sendInTime(server, what, `POST ${path}`, { body, headers });
    t.ok([400, 422].includes(status), `${what}: ${status} ${text.slice(0, 200)}`);
  }
  const cbor: Readonly<Record<string, Uint8Array>> = {
    "lists in lists": Buffer.alloc(1_000_000, 0x81),
    "lists that never end": Buffer.alloc(1_000_000, 0x9f),
    "tags of tags": Buffer.alloc(1_000_000, 0xc0),
    "a list longer than the body": Buffer.from("9bffffffffffffffff", "hex"),
    "a map longer than the body": Buffer.from("bbffffffffffffffff", "hex"),
    "a text longer than the body": Buffer.from("7b7fffffffffffffff", "hex"),
    "a text of many chunks": Buffer.concat([Buffer.of(0x7f), Buffer.alloc(1_000_000, 0x60)]),
  };
  for (const [what, body] of Object.entries(cbor)) {
    const headers = { "content-type": "application/cbor" };
    const { status, text } = await sendInTime(server, what, `POST ${MAPS}`, { body, headers });
    t.ok([400, 413, 422].includes(status), `${what}: ${status} ${text.slice(0, 200)}`);
  }
});

t.test("a match condition stops at its cost limit and the failure policy applies", async (t) => {
  await using server = await startTestServer();
  const REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  const register = (name: string, expression: string, failurePolicy: string) => {
    const hook = {
      name: `${name}.shop.example`,
      clientConfig: { url: "https://192.0.2.1/" },
      rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }],
      sideEffects: "None",
      admissionReviewVersions: ["v1"],
      failurePolicy,
      matchConditions: [{ name: "c", expression }],
    };
    return sendInTime(server, name, `POST ${REGISTRATIONS}`, { body: { metadata: { name }, webhooks: [hook] } });
  };
  const refused: Readonly<Record<string, string>> = {
    long: `${"true && ".repeat(20_000)}true`,
    deep: `${"(".repeat(5000)}true${")".repeat(5000)}`,
    unknown: "unknown.identifier()",
  };
  for (const [what, expression] of Object.entries(refused)) {
    t.equal((await register(what, expression, "Fail")).status, 422, what);
  }
  const costly = `!(${loops("[0,1,2,3,4,5,6,7,8,9].all(X, ", 9)}true${")".repeat(9)})`;
  const patterned = "object.data.k.matches('^(a+)+$') && false";
  t.equal((await register("patterned", patterned, "Fail")).status, 201);
  const body = { metadata: { name: "a" }, data: { k: `${"a".repeat(100_000)}!` } };
  t.equal((await sendInTime(server, "a pattern", `POST ${MAPS}`, { body })).status, 201);
  t.equal((await register("costly", costly, "Ignore")).status, 201);
  const small = (name: string) => ({ body: { metadata: { name }, data: { k: "" } } });
  t.equal((await sendInTime(server, "loops, ignored", `POST ${MAPS}`, small("b"))).status, 201);
  await server.send(`DELETE ${REGISTRATIONS}/costly`);
  t.equal((await register("strict", costly, "Fail")).status, 201);
  const { status } = await sendInTime(server, "loops", `POST ${MAPS}`, small("c"));
  t.ok(status >= 400, `loops that fail: ${status}`);
});

t.test("PEM blocks and names with repeated delimiters are parsed within the time limit", async (t) => {
  await using server = await startTestServer();
  const CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  const pumps = [
    "-----BEGIN X-----\n",
    "-----BEGIN ",
    "-----END X-----\n",
    "-",
    "0",
    " ",
    "/",
    "*",
    ".",
    "[",
    "a",
    ":",
    "'",
  ];
  for (const pump of pumps) {
    const what = JSON.stringify(pump);
    const text = `${pump.repeat(Math.ceil(400_000 / pump.length))}\u0001`;
    const data = Buffer.from(`-----BEGIN X-----\n${text}`).toString("base64");
    const secret = {
      type: "kubernetes.io/tls",
      data: { "tls.crt": data, "tls.key": "" },
      metadata: { generateName: "x" },
    };
    await sendInTime(server, `a certificate of ${what}`, "POST /api/v1/namespaces/default/secrets", { body: secret });
    const request = { signerName: "shop.example/x", usages: ["client auth"], request: data };
    const options = { body: { metadata: { name: "x" }, spec: request } };
    t.equal((await sendInTime(server, `a request of ${what}`, `POST ${CSRS}`, options)).status, 422, what);
    const container = { name: "c", image: text, env: [{ name: "E", valueFrom: { fieldRef: { fieldPath: text } } }] };
    const spec = { containers: [container], volumes: [{ name: "v", hostPath: { path: text } }], hostname: text };
    const pod = { body: { metadata: { name: "x", labels: { l: text }, creationTimestamp: text }, spec } };
    const { status } = await sendInTime(server, `a pod of ${what}`, "POST /api/v1/namespaces/default/pods", pod);
    t.ok(status === 400 || status === 422, `a pod of ${what}: ${status}`);
  }
});

t.test("lists of 5,000 items are validated within the time limit", async (t) => {
  await using server = await startTestServer();
  const many = <T>(item: (index: number) => T): readonly T[] => Array.from({ length: 5000 }, (_, index) => item(index));
  const core = "/api/v1/namespaces/default";
  const owner = (index: number) => ({ apiVersion: "v1", kind: "K", name: `a${index}`, uid: `u${index}` });
  const pod = (spec: object) => ({ spec: { containers: [{ name: "c", image: "i" }], ...spec } });
  const port = (index: number) => ({ name: `p${index}`, port: index + 1 });
  const items = many((index) => ({ key: `k${index}`, path: `p${index}` }));
  const spread = (index: number) => ({ maxSkew: 1, topologyKey: `k${index}`, whenUnsatisfiable: "ScheduleAnyway" });
  const bodies: readonly (readonly [string, string, object, object?])[] = [
    ["owners", "configmaps", {}, { ownerReferences: many(owner) }],
    ["finalizers", "configmaps", {}, { finalizers: many((index) => `a.b/c${index}`) }],
    ["ports", "services", { spec: { ports: many(port) } }],
    ["volumes", "pods", pod({ volumes: many((index) => ({ name: `v${index}`, emptyDir: {} })) })],
    ["items", "pods", pod({ volumes: [{ name: "v", projected: { sources: [{ configMap: { name: "m", items } }] } }] })],
    ["containers", "pods", pod({ containers: many((index) => ({ name: `c${index}`, image: "i" })) })],
    ["constraints", "pods", pod({ topologySpreadConstraints: many(spread) })],
    ["secrets", "pods", pod({ imagePullSecrets: many((index) => ({ name: `s${index}` })) })],
    ["tolerations", "pods", pod({ tolerations: many((index) => ({ key: `k${index}`, operator: "Exists" })) })],
  ];
  for (const [what, plural, body, metadata = {}] of bodies) {
    const { status } = await sendInTime(server, what, `POST ${core}/${plural}`, {
      body: { ...body, metadata: { name: what, ...metadata } },
    });
    t.equal(status, 201, what);
  }
});
