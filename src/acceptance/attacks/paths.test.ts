/** Encodings of one path: authorization and routing read each of them alike. */
import t from "tap";
import { parseRequestInfo } from "../../apiserver/request/request-info.ts";
import { makeRequest } from "../../http/request.ts";
import { parseTarget } from "../../http/server/request-target.ts";
import {
  type RequestOptions,
  readResponse,
  startTestServer,
  type TestResponse,
  type TestServer,
} from "../../testing/apiserver/server-fixture.ts";

const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const GROUP = "rbac.authorization.k8s.io";
const MARK = "R09MRA==";
const GOLD = ["api", "v1", "namespaces", "vault", "secrets", "gold"];

/** Eve has all permissions in namespace `open` and for non-resource URLs; Secret `gold` is in namespace `vault`. */
async function startWithTwoNamespaces(): Promise<TestServer> {
  const server = await startTestServer({ authorizationModes: ["Node", "RBAC"] });
  const create = async (path: string, body: object): Promise<void> => {
    const { status, text } = await server.send(`POST ${path}`, { body });
    if (status !== 201) throw new Error(text);
  };
  for (const name of ["open", "vault"]) await create("/api/v1/namespaces", { metadata: { name } });
  await create("/api/v1/namespaces/vault/secrets", { metadata: { name: "gold" }, data: { mark: MARK } });
  await create("/api/v1/namespaces/open/secrets", { metadata: { name: "gold" }, data: { mark: "dGlu" } });
  const subjects = [{ kind: "User", apiGroup: GROUP, name: "eve" }];
  const everything = [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }];
  await create(`${RBAC}/namespaces/open/roles`, { metadata: { name: "all" }, rules: everything });
  const roleRef = { apiGroup: GROUP, kind: "Role", name: "all" };
  await create(`${RBAC}/namespaces/open/rolebindings`, { metadata: { name: "eve" }, subjects, roleRef });
  const pages = [{ verbs: ["*"], nonResourceURLs: ["*"] }];
  await create(`${RBAC}/clusterroles`, { metadata: { name: "pages" }, rules: pages });
  const ofPages = { ...roleRef, kind: "ClusterRole", name: "pages" };
  await create(`${RBAC}/clusterrolebindings`, { metadata: { name: "eve" }, subjects, roleRef: ofPages });
  return server;
}

const ODD = [
  ...[
    "",
    ".",
    "..",
    "%2e",
    "%2e%2e",
    ".%2e",
    "%2E%2E",
    "...",
    "%2f",
    "%2F..",
    "..%2f",
    "..;",
    ";",
    "%5c",
    "..%5c",
    "\\..",
  ],
  ...[
    "%00",
    "%0a",
    "%0d%0a",
    "%20",
    "+",
    "%c0%ae%c0%ae",
    "%c0%af",
    "%e0%80%af",
    "%ff",
    "%ef%bc%8f",
    "%252f",
    "%252e%252e",
  ],
  ...["*", "open", "vault", "namespaces", "watch", "proxy", "status", "finalize", "secrets", "gold", "api", "v1"],
  ...["open%2f..%2fvault", "open%2fsecrets", "vault%2fsecrets%2fgold", "..%2f..%2fvault%2fsecrets%2fgold", "__proto__"],
];

const TWISTS: readonly ((segment: string) => string)[] = [
  (segment) => segment.toUpperCase(),
  (segment) => `${encoded(segment.slice(0, 1))}${segment.slice(1)}`,
  (segment) => [...segment].map(encoded).join(""),
  ...["%00", "%20", "%2f", "%2f.", ".", ";x", "%3f", "%23", "%0a", "/", "//", "/.", "/./", "/x/..", "%2e"].map(
    (tail) => (segment: string) => segment + tail,
  ),
  ...["%00", "./", "/", "%2f", "x/../", "x%2f..%2f", "%09"].map((head) => (segment: string) => head + segment),
];

function encoded(letter: string): string {
  return letter === "" ? "" : `%${letter.charCodeAt(0).toString(16)}`;
}

/** Thousands of encodings of, and paths similar to, the path of Secret `gold`. */
function* pathVariants(): Generator<string> {
  const path = (segments: readonly string[]): string => `/${segments.join("/")}`;
  for (let length = 3; length <= GOLD.length; length++) {
    const segments = GOLD.slice(0, length);
    for (let at = 0; at <= length; at++) {
      for (const odd of ODD) {
        yield path(segments.toSpliced(at, 0, odd));
        yield path(segments.toSpliced(at, 1, odd));
        yield path(segments.toSpliced(at, 0, odd, odd));
        yield path(segments.toSpliced(at, 0, odd, ".."));
      }
      const segment = segments[at];
      if (segment !== undefined) for (const twist of TWISTS) yield path(segments.with(at, twist(segment)));
    }
  }
  const gold = GOLD.join("/");
  for (const allowed of ["version", "healthz", "openapi/v3", "api/v1/namespaces/open", "api/v1/namespaces/open/pods"]) {
    for (const up of ["..", "%2e%2e", "..%2f..", ".%2e/..", "x/../..", "x/proxy/..", "x/proxy/..%2f.."]) {
      for (let times = 1; times < 6; times++) yield `/${allowed}/${`${up}/`.repeat(times)}${gold}`;
      yield `/${allowed}/${up}/vault/secrets/gold`;
      yield `/${allowed}/${up}%2fvault%2fsecrets%2fgold`;
    }
  }
  for (const host of ["http://x", "https://x@y", "http://x/..", "//x", "///"]) yield `${host}/${gold}`;
}

/** Resolves to the response; for a watch, to the events that arrive at once. */
async function sendRequest(
  server: TestServer,
  method: string,
  path: string,
  options: RequestOptions = {},
): Promise<ShortResponse> {
  if (parseRequestInfo({ method, path, query: "" }).verb !== "watch")
    return await server.send(`${method} ${path}`, options);
  const stop = new AbortController();
  const { status, body } = await server.open(`${method} ${path}`, { ...options, signal: stop.signal });
  let text = "";
  const reading = (async () => {
    for await (const chunk of body as AsyncIterable<Uint8Array>) text += Buffer.from(chunk).toString();
  })().catch(() => {});
  for (let attempt = 0; attempt < 5; attempt++) await new Promise(setImmediate);
  stop.abort();
  await reading;
  return { status, text };
}

type ShortResponse = Pick<TestResponse, "status" | "text">;

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

t.test("authorization attributes name the served Secret in every path encoding", { timeout: 120_000 }, async (t) => {
  await using server = await startWithTwoNamespaces();
  let tried = 0;
  let served = 0;
  for (const variant of new Set(pathVariants())) {
    const target = parseTarget(variant);
    if (target === undefined) continue;
    tried++;
    const { status, text } = await sendRequest(server, "GET", target.path);
    if (status !== 200 || !text.includes(MARK)) continue;
    served++;
    const { isResourceRequest, namespace, resource, name, group } = parseRequestInfo({ ...target, method: "GET" });
    const attributes = { isResourceRequest, group, resource };
    t.same(attributes, { isResourceRequest: true, group: "", resource: "secrets" }, variant);
    t.ok(["", "vault"].includes(namespace) && ["", "gold"].includes(name), variant);
  }
  t.ok(tried > 4000, `${tried} paths`);
  t.ok(served > 10, `${served} of them are served`);
});

t.test("a path with dot segments or encoded slashes addresses no other namespace", { timeout: 120_000 }, async (t) => {
  await using server = await startWithTwoNamespaces();
  const before = await server.send("GET /api/v1/namespaces/vault/secrets/gold");
  const leaks: string[] = [];
  for (const variant of new Set(pathVariants())) {
    const target = parseTarget(variant);
    if (target === undefined) continue;
    const { status, text } = await sendRequest(server, "GET", target.path, { user: "eve" });
    if (text.includes(MARK) || (status >= 500 && !isDeprecatedVerb(text))) leaks.push(`${status} ${variant}`);
  }
  t.same(leaks, []);
  const written: string[] = [];
  for (const [index, variant] of [...new Set(pathVariants())].entries()) {
    const target = parseTarget(variant);
    const method = METHODS[index % METHODS.length]!;
    if (target === undefined || method === "GET") continue;
    const patch = method === "PATCH" ? { headers: { "content-type": "application/merge-patch+json" } } : {};
    const options = { user: "eve", body: { data: {} }, ...patch };
    const { status, text } = await sendRequest(server, method, target.path, options);
    if (status >= 500 && !isDeprecatedVerb(text)) written.push(`${status} ${method} ${variant}`);
  }
  t.same(written, []);
  t.same((await server.send("GET /api/v1/namespaces/vault/secrets/gold")).json, before.json, "the Secret is unchanged");
});

t.test("an object name that is a path gets 422", async (t) => {
  await using server = await startWithTwoNamespaces();
  const names = [
    ".",
    "..",
    "a/b",
    "../vault",
    "a%2fb",
    "%2e%2e",
    "a%b",
    "a\0b",
    "a\nb",
    "a\u202eb",
    "a".repeat(10_000),
  ];
  const collections = [
    "/api/v1/namespaces",
    "/api/v1/namespaces/open/configmaps",
    "/api/v1/namespaces/open/pods",
    `${RBAC}/namespaces/open/roles`,
    `${RBAC}/clusterroles`,
    "/apis/coordination.k8s.io/v1/namespaces/open/leases",
  ];
  for (const index of collections) {
    for (const name of names) {
      // Names of roles are validated as one path segment only.
      if (index.endsWith("roles") && /^a(?:\0|\n|\u202e|a+)/.test(name)) continue;
      const created = await server.send(`POST ${index}`, { body: { metadata: { name } } });
      t.equal(created.status, 422, `${index} ${JSON.stringify(name.slice(0, 20))}`);
      const generated = await server.send(`POST ${index}`, { body: { metadata: { generateName: `${name}/` } } });
      t.equal(generated.status, 422, `${index} generated`);
    }
    const elsewhere = { body: { metadata: { name: "x", namespace: "vault" } }, user: "eve" };
    const { status } = await server.send(`POST ${index}`, elsewhere);
    t.ok(status === 400 || status === 403, `${index}: another namespace in the body than in the path: ${status}`);
  }
});

t.test(
  "a log request for a container that the pod lacks gets 400, and for another path 403 or 404, for a NUL 400",
  async (t) => {
    await using server = await startWithTwoNamespaces();
    const pods = "/api/v1/namespaces/open/pods";
    const spec = { nodeName: "n1", containers: [{ name: "c", image: "i" }] };
    await server.send(`POST ${pods}`, { body: { metadata: { name: "web" }, spec } });
    const names = [
      "..",
      "../../vault/gold/c",
      "c/../../x",
      "/",
      "c?x=",
      "c#",
      "c%00",
      "C",
      "c ",
      "__proto__",
      "\u002e\u002e",
    ];
    for (const name of names) {
      const { status } = await server.send(`GET ${pods}/web/log?container=${encodeURIComponent(name)}`, {
        user: "eve",
      });
      t.equal(status, 400, name);
    }
    for (const path of ["web%2f..%2fx/log", "..%2fweb/log", "web/log/../../x", "web%00/log"]) {
      const { status } = await server.send(`GET ${pods}/${path}`, { user: "eve" });
      t.ok(status === 403 || status === 404 || (status === 400 && path.includes("%00")), `${status} ${path}`);
    }
    for (const query of ["tailLines=1e9", "tailLines=%2Fetc", "sinceTime=%0d%0aX:y", "limitBytes=-1"]) {
      const { status } = await server.send(`GET ${pods}/web/log?${query}`, { user: "eve" });
      t.ok(status === 400 || status === 422, `${status} ${query}`);
    }
  },
);

t.test("a field selector for a permitted name lists that object, and other selectors list nothing", async (t) => {
  await using server = await startWithTwoNamespaces();
  const ruby = { metadata: { name: "ruby" }, data: { mark: "cnVieQ==" } };
  await server.send("POST /api/v1/namespaces/vault/secrets", { body: ruby });
  const rules = [{ verbs: ["list", "get", "watch"], apiGroups: [""], resources: ["secrets"], resourceNames: ["ruby"] }];
  await server.send(`POST ${RBAC}/namespaces/vault/roles`, { body: { metadata: { name: "ruby" }, rules } });
  const subjects = [{ kind: "User", apiGroup: GROUP, name: "eve" }];
  const roleRef = { apiGroup: GROUP, kind: "Role", name: "ruby" };
  await server.send(`POST ${RBAC}/namespaces/vault/rolebindings`, {
    body: { metadata: { name: "e" }, subjects, roleRef },
  });
  const list = async (query: string) => {
    const request = { path: "/api/v1/namespaces/vault/secrets", query };
    const token = server.parts.server.loopbackToken({ name: "eve", uid: "", groups: [], extra: {} });
    const authorization = `Bearer ${token}`;
    return await readResponse(
      await server.parts.server.handler(makeRequest({ ...request, headers: { authorization } })),
    );
  };
  t.match(await list("fieldSelector=metadata.name%3Druby"), { status: 200, text: /cnVieQ==/ });
  const queries = [
    ...["", "fieldSelector=", "fieldSelector=metadata.name%3Dgold", "fieldSelector=metadata.name!%3Druby"],
    "fieldSelector=metadata.name%3Dgold&fieldSelector=metadata.name%3Druby",
    "fieldSelector=metadata.name%3Druby&fieldSelector=metadata.name%3Dgold",
    "fieldSelector=metadata.name%3Druby%2Cmetadata.name%3Dgold",
    "fieldSelector=metadata.name%3Dgold%2Cmetadata.name%3Druby",
    "fieldselector=metadata.name%3Druby",
    "fieldSelector=%20metadata.name%3Druby",
    "fieldSelector=metadata.name%3D%3D%3Druby",
    "fieldSelector=metadata.name%3Druby%5C%2Cmetadata.name%3Dgold",
    "fieldSelector=type%3DOpaque%2Cmetadata.name!%3Druby",
    "labelSelector=metadata.name%3Druby",
    "fieldSelector=metadata.name%3Druby%00",
  ];
  for (const query of queries) t.notMatch((await list(query)).text, MARK, query);
});

/** The response to the path of a deprecated verb without a resource: Kubernetes' 500. */
function isDeprecatedVerb(text: string): boolean {
  return text.includes("unable to determine kind and namespace");
}
