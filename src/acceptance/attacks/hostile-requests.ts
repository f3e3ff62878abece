/** Requests that cost a server the most that its limits admit: many values, long texts, many versions and rules. */

import type { SentRequest } from "./measured-server.ts";

export interface HostileRequest extends SentRequest {
  readonly what: string;
  readonly body?: string;
  /** A path that a definition before leads to; the request is sent once it is served. */
  readonly served?: string;
  /** Sent by the administrator of a namespace, too. */
  readonly byNamespaceAdmin?: boolean;
}

const MAPS = "/api/v1/namespaces/default/configmaps";
const PODS = "/api/v1/namespaces/default/pods";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/** A little less than the values that a body may have. */
const COUNT = 48_000;

const PATCHES = ["merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"];

/** The requests in their order: later ones use what earlier ones create. */
export function hostileRequests(): readonly HostileRequest[] {
  return [...maps(), ...odd(), ...pods(), ...roles(), ...definitions(), ...reads(), ...reviews(), ...refused()];
}

function many<T>(count: number, make: (index: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

function keys(value: unknown, count = COUNT): object {
  return Object.fromEntries(many(count, (index) => [`k${index}`, value]));
}

function configMap(name: string, rest: object, metadata: object = {}): string {
  return JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...metadata }, ...rest });
}

function* maps(): Generator<HostileRequest> {
  const data = (value: string) => configMap("a", { data: keys(value) });
  yield { what: "ConfigMap of 48,000 keys: create", line: `POST ${MAPS}`, body: data("") };
  yield { what: "ConfigMap of 48,000 keys: update", line: `PUT ${MAPS}/a`, body: data("b") };
  for (const type of PATCHES) {
    const query = type.startsWith("apply") ? "?fieldManager=a&force=true" : "";
    const what = `ConfigMap of 48,000 keys: ${type}`;
    yield { what, line: `PATCH ${MAPS}/a${query}`, type: `application/${type}`, body: data(type[0] ?? "") };
  }
  const operations = many(10_000, (index) => ({ op: "add", path: `/data/k${index}`, value: "j" }));
  yield {
    what: "ConfigMap of 48,000 keys: json-patch+json",
    line: `PATCH ${MAPS}/a`,
    type: "application/json-patch+json",
    body: JSON.stringify(operations),
  };
  const lines = many(COUNT, (index) => `  k${index}: z\n`).join("");
  const yaml = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n${lines}`;
  yield {
    what: "ConfigMap of 48,000 keys: update in YAML",
    line: `PUT ${MAPS}/a`,
    type: "application/yaml",
    body: yaml,
  };
  const small = JSON.stringify({ metadata: { labels: { a: "b" } } });
  const patch = { line: `PATCH ${MAPS}/a`, type: "application/merge-patch+json", body: small };
  yield { what: "ConfigMap of 48,000 keys: one label", ...patch };
  yield { what: "ConfigMap of 48,000 labels", line: `POST ${MAPS}`, body: configMap("b", {}, { labels: keys("") }) };
  const finalizers = many(COUNT, (index) => `example.com/${index}`);
  yield { what: "ConfigMap of 48,000 finalizers", line: `POST ${MAPS}`, body: configMap("c", {}, { finalizers }) };
  const ownerReferences = many(9000, (n) => ({ apiVersion: "v1", kind: "Node", name: `n${n}`, uid: `u${n}` }));
  yield { what: "ConfigMap of 9,000 owners", line: `POST ${MAPS}`, body: configMap("d", {}, { ownerReferences }) };
  const text = { data: { a: "x: y\n".repeat(200_000) } };
  yield { what: "ConfigMap of 1 MB", line: `POST ${MAPS}`, body: configMap("e", text) };
  yield {
    what: "ConfigMap of 1 MB: update",
    line: `PUT ${MAPS}/e`,
    body: configMap("e", text, { labels: { a: "b" } }),
  };
}

/** Bodies that take other paths than those that clients send. */
function* odd(): Generator<HostileRequest> {
  const dryRun = `POST ${MAPS}?dryRun=All`;
  const texts = many(COUNT, (index) => `"k${index}":""`).join(",");
  const repeated = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"o"},"data":{"k0":"a",${texts}}}`;
  yield { what: "ConfigMap of 48,000 keys, one twice", line: dryRun, body: repeated };
  yield { what: "ConfigMap of 48,000 unknown fields", line: dryRun, body: configMap("o", keys(1)) };
  const escaped = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"\\ud800"},"data":{${texts}}}`;
  yield { what: "ConfigMap of 48,000 keys, with an unpaired surrogate", line: dryRun, body: escaped };
  const immutable = many(COUNT, (index) => `"k${index}":1.0`).join(",");
  const numbers = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"o"},"data":{${immutable}}}`;
  yield { what: "ConfigMap of 48,000 numbers", line: dryRun, body: numbers };
  const controller = (n: number) => ({ apiVersion: "v1", kind: "Node", name: `n${n}`, uid: `u${n}`, controller: true });
  const ownerReferences = many(8000, controller);
  yield { what: "ConfigMap of 8,000 controllers", line: dryRun, body: configMap("o", {}, { ownerReferences }) };
  const secrets = MAPS.replace("configmaps", "secrets");
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "o" }, data: keys("") };
  yield { what: "Secret of 48,000 keys", line: `POST ${secrets}`, body: JSON.stringify(secret) };
  const rules = many(24_000, () => ({}));
  const ingress = { apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata: { name: "o" }, spec: { rules } };
  const ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
  const table = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const body = JSON.stringify(ingress);
  yield { what: "table of an Ingress of 24,000 rules", line: `POST ${ingresses}`, accept: table, body };
}

function* roles(): Generator<HostileRequest> {
  const path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
  const of = (name: string, resourceNames: readonly string[]) => ({
    line: `POST ${path}`,
    byNamespaceAdmin: true,
    body: JSON.stringify({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata: { name },
      rules: [{ verbs: ["get"], apiGroups: [""], resources: ["pods"], resourceNames }],
    }),
  });
  const names = many(19_000, (index) => `n${index}`);
  yield { what: "Role of 19,000 names", ...of("a", names) };
  const other = { ...of("b", names) };
  yield { what: "Role of 19,000 names that is refused", ...other, body: other.body.replace('"pods"', '"nodes"') };
}

function* pods(): Generator<HostileRequest> {
  const container = (index: number) => ({
    name: `c${index}`,
    image: "registry.example.com/team/image:v1",
    env: [{ name: "A", value: "b" }],
    ports: [{ containerPort: index + 1 }],
    resources: { requests: { cpu: "1m" }, limits: { cpu: "1" } },
    livenessProbe: { httpGet: { path: "/", port: 1 } },
  });
  const pod = (name: string, spec: object) =>
    JSON.stringify({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name },
      spec: { containers: [container(0)], ...spec },
    });
  yield {
    what: "Pod of 1,000 containers",
    line: `POST ${PODS}`,
    body: pod("a", { containers: many(1000, container) }),
  };
  const images = { spec: { containers: many(1000, (index) => ({ name: `c${index}`, image: "b" })) } };
  yield {
    what: "Pod of 1,000 containers: images",
    line: `PATCH ${PODS}/a`,
    type: "application/strategic-merge-patch+json",
    body: JSON.stringify(images),
  };
  const tolerations = many(12_000, (index) => ({ key: `k${index}`, operator: "Exists", effect: "NoSchedule" }));
  yield { what: "Pod of 12,000 tolerations", line: `POST ${PODS}`, body: pod("b", { tolerations }) };
  const volumes = many(16_000, (index) => ({ name: `v${index}`, emptyDir: {} }));
  yield { what: "Pod of 16,000 volumes", line: `POST ${PODS}`, body: pod("c", { volumes }) };
}

function definition(plural: string, versions: readonly object[]): string {
  const names = { plural, kind: plural.toUpperCase(), singular: `${plural}x` };
  return JSON.stringify({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.example.com` },
    spec: { group: "example.com", scope: "Namespaced", names, versions },
  });
}

function version(openAPIV3Schema: object, name = "v1"): object {
  return { name, served: true, storage: name === "v1", schema: { openAPIV3Schema } };
}

function* definitions(): Generator<HostileRequest> {
  const any = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const versions = many(400, (index) => version(any, `v${index + 1}`));
  yield { what: "definition of 400 versions", line: `POST ${CRDS}`, body: definition("many", versions) };
  yield { what: "OpenAPI v2 with 400 versions", line: "GET /openapi/v2" };
  yield { what: "OpenAPI v3 with 400 versions", line: "GET /openapi/v3" };
  yield { what: "discovery of 400 versions", line: "GET /apis" };
  const of = (properties: object) => [version({ type: "object", properties })];
  const text = (index: number, more: object = {}) => [`p${index}`, { type: "string", maxLength: 9, ...more }] as const;
  const properties = (count: number, more?: (index: number) => object) =>
    Object.fromEntries(many(count, (index) => text(index, more?.(index))));
  yield {
    what: "definition of 15,000 properties",
    line: `POST ${CRDS}`,
    body: definition("wide", of(properties(15_000))),
  };
  yield { what: "OpenAPI v2 with 15,000 properties", line: "GET /openapi/v2" };
  const pattern = properties(10_000, (index) => ({ pattern: `^(a|b)*[x-z]{1,50}${index}$` }));
  yield { what: "definition of 10,000 patterns", line: `POST ${CRDS}`, body: definition("patterns", of(pattern)) };
  const rule = (index: number) => ({ "x-kubernetes-validations": [{ rule: `self != 'c${index}'` }] });
  yield {
    what: "definition of 5,000 rules",
    line: `POST ${CRDS}`,
    body: definition("rules", of(properties(5000, rule))),
  };
  const list = {
    type: "array",
    maxItems: 100_000,
    items: { type: "integer" },
    "x-kubernetes-validations": [{ rule: "self.all(x, x >= 0)" }],
  };
  yield { what: "definition with a list", line: `POST ${CRDS}`, body: definition("lists", of({ list })) };
  const path = "/apis/example.com/v1/namespaces/default/lists";
  const resource = (name: string, count: number) => {
    const object = { apiVersion: "example.com/v1", kind: "LISTS", metadata: { name }, list: many(count, (n) => n) };
    return { line: `POST ${path}`, body: JSON.stringify(object), served: path };
  };
  yield { what: "definition with any fields", line: `POST ${CRDS}`, body: definition("any", [version(any)]) };
  yield* customResources();
  yield { what: "first custom resource with a rule", ...resource("a", 1) };
  yield { what: "custom resource of 48,000 items and a rule", ...resource("b", COUNT) };
}

function* customResources(): Generator<HostileRequest> {
  const path = "/apis/example.com/v1/namespaces/default/any";
  const body = (rest: object) =>
    JSON.stringify({ apiVersion: "example.com/v1", kind: "ANY", metadata: { name: "a" }, ...rest });
  const root = body(keys("", 10_001));
  yield { what: "custom resource of 10,001 root members", line: `POST ${path}`, body: root, served: path };
  const of = "custom resource of 10,000 keys";
  yield { what: `${of}: create`, line: `POST ${path}`, body: body(keys("", 9990)) };
  yield { what: `${of}: update`, line: `PUT ${path}/a`, body: body(keys("b", 9990)) };
  for (const type of [PATCHES[0], PATCHES[2]]) {
    const line = `PATCH ${path}/a?fieldManager=a${type === PATCHES[2] ? "&force=true" : ""}`;
    yield { what: `${of}: ${type}`, line, type: `application/${type}`, body: body(keys(type?.[0], 9990)) };
  }
  const nested = "custom resource of 48,000 keys below its root";
  const spec = (value: unknown, count = COUNT) => body({ spec: keys(value, count) });
  yield { what: `${nested}: create`, line: `POST ${path}`, body: spec("").replace('"name":"a"', '"name":"b"') };
  for (const type of [PATCHES[0], PATCHES[2]]) {
    const line = `PATCH ${path}/b?fieldManager=a${type === PATCHES[2] ? "&force=true" : ""}`;
    const patch = spec(type?.[0]).replace('"name":"a"', '"name":"b"');
    yield { what: `${nested}: ${type}`, line, type: `application/${type}`, body: patch };
  }
  const long = spec(0).replaceAll(":0", ":9007199254740993");
  yield { what: "custom resource of 48,000 long integers", line: `POST ${path}?dryRun=All`, body: long };
  yield { what: "custom resource of 24,000 objects", line: `POST ${path}?dryRun=All`, body: spec({}, 24_000) };
}

function* reads(): Generator<HostileRequest> {
  const protobuf = "application/vnd.kubernetes.protobuf";
  const table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
  yield { what: "list of large ConfigMaps", line: `GET ${MAPS}` };
  yield { what: "list of large ConfigMaps in YAML", line: `GET ${MAPS}`, accept: "application/yaml" };
  yield { what: "list of large ConfigMaps in protobuf", line: `GET ${MAPS}`, accept: protobuf };
  yield { what: "table of large ConfigMaps", line: `GET ${MAPS}`, accept: table };
  yield { what: "list of large ConfigMaps, indented", line: `GET ${MAPS}?pretty=true` };
  const values = many(1000, (index) => `v${index}`).join(",");
  yield {
    what: "label selector of 1,000 values",
    line: `GET ${MAPS}?labelSelector=${encodeURIComponent(`a in (${values})`)}`,
  };
}

function* reviews(): Generator<HostileRequest> {
  const review = (labelSelector: object) =>
    JSON.stringify({ spec: { resourceAttributes: { resource: "pods", verb: "list", labelSelector } } });
  const requirements = many(20_000, () => ({}));
  yield { what: "review of 20,000 empty requirements", line: `POST ${REVIEWS}`, body: review({ requirements }) };
  const valid = many(5000, (index) => ({ key: `k${index}`, operator: "In", values: ["v"] }));
  yield { what: "review of 5,000 requirements", line: `POST ${REVIEWS}`, body: review({ requirements: valid }) };
  const values = many(25_000, (index) => `v${index}`);
  const one = [{ key: "k", operator: "In", values }];
  yield { what: "review of 25,000 values", line: `POST ${REVIEWS}`, body: review({ requirements: one }) };
}

/** Bodies beyond the limits. */
function* refused(): Generator<HostileRequest> {
  const size = 3 * 2 ** 20 - 100;
  const fill = (text: string) => text.repeat(Math.floor(size / text.length));
  yield {
    what: "51 MB of text",
    line: `POST ${MAPS}`,
    body: configMap("x", { data: { a: "a".repeat(51 * 2 ** 20) } }),
  };
  yield { what: "3 MB of short keys", line: `POST ${MAPS}`, body: configMap("x", { data: keys("", 250_000) }) };
  yield { what: "3 MB of empty arrays", line: `POST ${MAPS}`, body: `{"a":[${fill("[],")}[]]}` };
  yield { what: "3 MB of YAML items", line: `POST ${MAPS}`, type: "application/yaml", body: `data:\n${fill("- a\n")}` };
  yield { what: "3 MB of YAML flow", line: `POST ${MAPS}`, type: "application/yaml", body: `data: [${fill("a,")}a]` };
  yield { what: "3 MB of JSON with an error at its end", line: `POST ${MAPS}`, body: `{"a":"${fill("\\n")}` };
  yield { what: "a review of 3 MB", line: `POST ${REVIEWS}`, body: JSON.stringify({ spec: { a: fill("a") } }) };
}
