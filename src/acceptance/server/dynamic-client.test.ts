/**
 * Replays the recorded requests of a dynamic client (`shared/oracles/dynamic-client-http`) to a custom resource, and
 * compares the shape of the responses with the recorded ones.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import t from "tap";
import { makeRequest } from "../../http/request.ts";
import { readResponse, startTestServer } from "../../testing/apiserver/server-fixture.ts";

const SHARED = process.env.SVC_SHARED ?? new URL("../../../../shared", import.meta.url).pathname;
const folder = `${SHARED}/oracles/dynamic-client-http`;
const PLACE = "/apis/flops.example.com/v1alpha1/namespaces/mops/flips";

interface Recorded {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

function recorded(name: string): Recorded {
  const text = readFileSync(`${folder}/TestGoldenRequest/${name}`, "utf8").replaceAll("\r\n", "\n");
  const end = text.indexOf("\n\n");
  const [first = "", ...lines] = text.slice(0, end).split("\n");
  const [method = "", path = ""] = first.split(" ");
  // The group of a custom resource must contain a dot.
  const target = path.replace("/flops/", "/flops.example.com/");
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 2)]),
  );
  return { method, target, headers, body: text.slice(end + 2) };
}

const definition = {
  metadata: { name: "flips.flops.example.com" },
  spec: {
    group: "flops.example.com",
    names: { plural: "flips", singular: "flip", kind: "Flip", listKind: "FlipList" },
    scope: "Namespaced",
    versions: [
      {
        name: "v1alpha1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};

/**
 * The recording uses the unknown subresource `/fin` and the invalid `fieldValidation=warn`; `without` sends the request
 * to the object itself, with the valid value. Custom resources do not support strategic merge patches.
 */
const cases: Readonly<Record<string, readonly [asRecorded: number, without: number]>> = {
  create: [404, 201],
  get: [404, 200],
  list: [200, 200],
  update: [404, 200],
  updatestatus: [422, 200],
  patch: [404, 415],
  apply: [404, 200],
  applystatus: [200, 200],
  watch: [200, 200],
  delete: [404, 200],
  deletecollection: [200, 200],
};

t.test("the server accepts every request of a dynamic client", async (t) => {
  if (!existsSync(folder)) {
    t.comment("shared/ is not present: a dynamic client's requests are left out");
    return;
  }
  t.same(Object.keys(cases).sort(), readdirSync(`${folder}/TestGoldenRequest`).sort(), "all that are recorded");
  await using server = await startTestServer();
  await server.send("POST /api/v1/namespaces", { body: { metadata: { name: "mops" } } });
  await server.send("POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: definition });
  for (let tries = 0; tries < 50 && (await server.send(`GET ${PLACE}`)).status !== 200; tries++) {
    await server.clock.advance(100);
  }
  const token = server.parts.server.loopbackToken({ name: "a", uid: "", groups: ["system:masters"], extra: {} });
  const identity = { apiVersion: "flops.example.com/v1alpha1", kind: "Flip" };
  for (const [name, [asRecorded, without]] of Object.entries(cases)) {
    const { method, target, headers, body } = recorded(name);
    for (const [sent, status] of [
      [target, asRecorded],
      // A client creates at the collection, with apiVersion and kind in the body.
      [
        target
          .replace("/fin", "")
          .replace("=warn", "=Warn")
          .replace(method === "POST" ? "/mips" : "//", ""),
        without,
      ],
    ] as const) {
      const [path = "", requests = ""] = sent.split("?");
      // The recorded resourceVersion does not exist here, and a watch from it would not end.
      const query = `${requests.replace("resourceVersion=42", "resourceVersion=0")}&timeoutSeconds=1`;
      const found = (await server.send(`GET ${PLACE}/mips`)).json;
      const version = method === "PUT" ? { resourceVersion: found.metadata?.resourceVersion } : {};
      const full =
        method === "POST" || method === "PUT" || name.startsWith("apply")
          ? JSON.stringify({ ...identity, ...JSON.parse(body), metadata: { name: "mips", ...version } })
          : body;
      const options = full === "" ? {} : { body: full };
      const applied = name.startsWith("apply") ? `${query}&fieldManager=m` : query;
      const all = { ...headers, authorization: `Bearer ${token}` };
      const response = await server.parts.server.handler(
        makeRequest({ method, path, query: applied, headers: all, ...options }),
      );
      if (name === "watch" && response.status === 200) void server.clock.advance(2000);
      const answer = await readResponse(response);
      t.equal(answer.status, status, `${name}: ${method} ${sent}: ${answer.text.slice(0, 200)}`);
    }
  }
});

t.test("responses have the shape of the recorded ones", async (t) => {
  if (!existsSync(folder)) {
    t.comment("shared/ is not present: what a dynamic client reads is left out");
    return;
  }
  await using server = await startTestServer();
  const accounts = "/api/v1/namespaces/default/serviceaccounts";
  const answer = (name: string) => JSON.parse(readFileSync(`${folder}/TestGoldenResponse/${name}`, "utf8"));
  const created = await server.send(`POST ${accounts}`, { body: { metadata: { name: "foobar" } } });
  t.same(shapeOf(created.json), shapeOf(answer("create")));
  t.same(shapeOf((await server.send(`GET ${accounts}/foobar`)).json), shapeOf(answer("get")));
  const listed = (await server.send(`GET ${accounts}`)).json;
  const { items: theirs, ...list } = answer("list");
  const { items: ours, ...own } = listed;
  t.same(shapeOf(own), shapeOf(list));
  // Objects in lists of built-in kinds have no apiVersion and kind, as in Kubernetes.
  const { kind: _kind, apiVersion: _apiVersion, ...first } = theirs[0];
  t.same(shapeOf(ours[0]), shapeOf(first));
});

/** The names and types of a value's members. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== "object" || value === null) return typeof value;
  const members = Object.entries(value).filter(([name]) => name !== "managedFields");
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, one]) => [name, shapeOf(one)]));
}
