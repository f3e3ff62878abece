/**
 * Compares the documents of every group version with those of Kubernetes 1.33: paths, operations, parameters,
 * responses, components, members, formats, defaults and extensions, without descriptions. Known differences are in
 * `testdata/openapi-differences.json` by reason; the list may only shrink.
 *
 *     SVC_RECORD=1 node src/apiserver/openapi/openapi.test.ts       removes differences that no longer exist
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";
import { createCustomKind } from "../../api/apiextensions/custom-resource/kind.ts";
import type { CustomResourceDefinition } from "../../api/apiextensions/custom-resource-definition/schema.ts";
import { builtinScheme } from "../../api/builtin.ts";
import { kubernetesGroup, type Scheme } from "../../api/scheme.ts";
import type { HttpResponse } from "../../http/message.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { OpenApi } from "./openapi.ts";

const shared = process.env.SVC_SHARED ?? new URL("../../../../shared", import.meta.url).pathname;
const oracles = `${shared}/oracles/openapi-v3/`;
const listPath = fileURLToPath(new URL("../../../testdata/openapi-differences.json", import.meta.url));
const record = process.env.SVC_RECORD === "1";
const UNEXPLAINED = "unexplained";

type Json = Readonly<Record<string, unknown>>;
/** Reasons with the locations that they explain; `*` in a location matches any step. */
type Differences = Readonly<Record<string, readonly string[]>>;

function bodyOf({ body }: HttpResponse): Json {
  if (!(body instanceof Uint8Array)) throw new TypeError("The document does not come in one piece");
  return JSON.parse(Buffer.from(body).toString()) as Json;
}

async function documentOf(openApi: OpenApi, path: string): Promise<Json> {
  const response = await openApi.v3(path, null, {});
  if (response === undefined) throw new Error(`Cannot find the document of ${path}`);
  return bodyOf(response);
}

async function pathsOf(openApi: OpenApi): Promise<readonly string[]> {
  return Object.keys(bodyOf(await openApi.root(undefined)).paths as Json);
}

/**
 * Drops descriptions and unwraps single references, which are wrapped only because of their description. Keeps
 * Kubernetes' group names only.
 */
function comparable(value: unknown, names = false): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => comparable(item));
    return items.filter((item, index) => items.findIndex((other) => deepEqual(other, item)) === index);
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([name, content]) => {
    return names || !(name === "description" && typeof content === "string");
  });
  const result = Object.fromEntries(
    entries.map(([name, content]) => {
      if (name === "group" && typeof content === "string") return [name, kubernetesGroup(content)];
      return [name, comparable(content, !names && name === "properties")];
    }),
  );
  const { allOf } = result;
  return !names && Object.keys(result).length === 1 && Array.isArray(allOf) && allOf.length === 1 ? allOf[0] : result;
}

/** The locations where `found` differs from `wanted`, with both values. */
function compare(found: unknown, wanted: unknown, steps: readonly string[], report: (location: string) => void): void {
  if (deepEqual(found, wanted)) return;
  if (isObject(found) && isObject(wanted)) {
    for (const name of new Set([...Object.keys(found), ...Object.keys(wanted)])) {
      compare(found[name], wanted[name], [...steps, name], report);
    }
    return;
  }
  const text = (value: unknown) => JSON.stringify(value)?.slice(0, 80) ?? "nothing";
  report(`${steps.join(" ")}: ${text(found)}, not ${text(wanted)}`);
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `apis/apps/v1 … enum: …` is explained by `* enum: …`. */
function isExplained(location: string, { patterns }: { readonly patterns: readonly RegExp[] }): boolean {
  return patterns.some((pattern) => pattern.test(location));
}

function patternsOf(locations: readonly string[]): readonly RegExp[] {
  const escaped = (text: string) => text.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*");
  return locations.map((location) => new RegExp(`^${escaped(location)}`));
}

const BOTH_LISTED = { served: true, listed: true };
const ONE_LISTED = { served: true, listed: false };
const ONE_SERVED = { served: false, listed: false };

t.test("OpenApi publishes what Kubernetes 1.33 publishes", async (t) => {
  if (!existsSync(oracles)) {
    t.comment("shared/ is not present: the comparison of OpenAPI documents is left out");
    return;
  }
  const openApi = new OpenApi(builtinScheme(), BOTH_LISTED, "v1.33.0", new FakeClock());
  const locations: string[] = [];
  let compared = 0;
  for (const path of await pathsOf(openApi)) {
    const file = `${oracles}${path.replaceAll("/", "__")}_openapi.json`;
    if (!existsSync(file)) continue;
    compared++;
    const wanted = JSON.parse(readFileSync(file, "utf8")) as Json;
    compare(comparable(await documentOf(openApi, path)), comparable(wanted), [path], (location) =>
      locations.push(location),
    );
  }
  t.comment(`${compared} documents`);
  const listed = JSON.parse(readFileSync(listPath, "utf8")) as Differences;
  if (record) strike(listed, locations);
  const reasons = Object.entries(record ? (JSON.parse(readFileSync(listPath, "utf8")) as Differences) : listed);
  const explained = reasons.map(([reason, known]) => ({ reason, patterns: patternsOf(known) }));
  t.same(
    locations.filter((location) => !explained.some((each) => isExplained(location, each))),
    [],
    "nothing else differs",
  );
  for (const { reason, patterns } of explained) {
    for (const pattern of patterns)
      t.ok(
        locations.some((location) => pattern.test(location)),
        `${reason}: ${pattern}`,
      );
  }
});

t.test("OpenApi publishes the same documents for both names of a group", async (t) => {
  const openApi = new OpenApi(builtinScheme(), BOTH_LISTED, "v1.33.0", new FakeClock());
  const respelt = async (path: string) => {
    const text = JSON.stringify(await documentOf(openApi, path)).replaceAll(".svc.io", ".k8s.io");
    return comparable(JSON.parse(text));
  };
  const own = (await pathsOf(openApi)).filter((path) => path.includes(".svc.io"));
  t.ok(own.length > 20);
  for (const path of own) t.same(await respelt(path), await respelt(path.replace(".svc.io", ".k8s.io")), path);
  const alone = await pathsOf(new OpenApi(builtinScheme(), ONE_SERVED, "v1.33.0", new FakeClock()));
  t.same(
    alone.filter((path) => path.includes("k8s.io")),
    [],
    "one group name without aliases",
  );
  const listed = new OpenApi(builtinScheme(), ONE_LISTED, "v1.33.0", new FakeClock());
  t.same(
    (await pathsOf(listed)).filter((path) => path.includes("svc.io")),
    [],
    "the index lists each group once",
  );
  const event = "apis/events.svc.io/v1";
  t.same(await documentOf(listed, event), await documentOf(openApi, event), "the other document is served");
  const v2 = JSON.stringify(bodyOf(await listed.v2(undefined, undefined)));
  t.notMatch(v2, /svc\.io/, "and /openapi/v2 has each operation once");
});

interface OperationFact {
  readonly path: string;
  readonly method: string;
  readonly op: string;
  readonly action?: string;
  readonly query?: string;
  readonly body?: string;
  readonly responses: Readonly<Record<string, string>>;
}

t.test("OpenApi has Kubernetes' operation ids in v2", async (t) => {
  if (!existsSync(shared)) {
    t.comment("shared/ is not present: the comparison of operations is left out");
    return;
  }
  const { operations, querySets } = JSON.parse(readFileSync(`${shared}/facts/operations.json`, "utf8")) as {
    readonly operations: readonly OperationFact[];
    readonly querySets: Readonly<Record<string, readonly string[]>>;
  };
  const facts = new Map(operations.map((fact) => [`${fact.method} ${fact.path}`, fact]));
  const openApi = new OpenApi(builtinScheme(), BOTH_LISTED, "v1.33.0", new FakeClock());
  const { paths } = bodyOf(await openApi.v2("application/json", undefined)) as {
    readonly paths: Record<string, V2Path>;
  };
  let compared = 0;
  for (const [path, item] of Object.entries(paths)) {
    // The API of metrics is not part of Kubernetes' own server.
    if (path.includes(".svc.io") || path.startsWith("/apis/metrics.k8s.io/")) continue;
    for (const [method, operation] of Object.entries(item)) {
      if (method === "parameters") continue;
      const fact = facts.get(`${method.toUpperCase()} ${path}`);
      if (fact === undefined) {
        t.fail(`${method} ${path} is not Kubernetes'`);
        continue;
      }
      compared++;
      const { operationId, parameters = [], responses, "x-kubernetes-action": action } = operation as V2Operation;
      const query = [...parameters, ...(item.parameters ?? [])].filter((parameter) => parameter.in === "query");
      const answers = Object.entries(responses).map(([code, { schema }]) => [code, schemaName(schema)] as const);
      const found = { op: operationId, action, query: query.map(({ name }) => name).sort(), answers };
      const wanted = {
        op: fact.op,
        action: fact.action,
        query: [...(querySets[fact.query ?? "q0"] ?? [])].sort(),
        answers: Object.entries(fact.responses),
      };
      if (!deepEqual(found, wanted)) t.same(found, wanted, `${method} ${path}`);
    }
  }
  t.ok(compared > 500, `${compared} operations`);
});

interface V2Operation {
  readonly operationId: string;
  readonly parameters?: readonly V2Parameter[];
  readonly responses: Readonly<Record<string, { readonly schema?: Json }>>;
  readonly "x-kubernetes-action"?: string;
}

interface V2Parameter {
  readonly name: string;
  readonly in: string;
}

type V2Path = Readonly<Record<string, V2Operation>> & { readonly parameters?: readonly V2Parameter[] };

function schemaName(schema: Json | undefined): string {
  const reference = schema?.$ref;
  return typeof reference === "string" ? reference.slice("#/definitions/".length) : String(schema?.type ?? "");
}

t.test("OpenApi redirects requests with an outdated hash, and serves protobuf", async (t) => {
  const openApi = new OpenApi(builtinScheme(), BOTH_LISTED, "v1.33.0", new FakeClock());
  const path = "apis/scheduling.k8s.io/v1";
  const plain = await openApi.v3(path, null, {});
  const etag = String(plain.headers.etag);
  t.equal((await openApi.v3(path, null, { "if-none-match": etag }))?.status, 304);
  const moved = await openApi.v3(path, "FFFF", {});
  t.match(moved, { status: 301, headers: { location: `/openapi/v3/${path}?hash=${etag.slice(1, -1)}` } });
  const current = await openApi.v3(path, etag.slice(1, -1), {});
  t.match(current.headers, { "cache-control": "public, immutable", expires: "Fri, 01 Jan 2027 00:00:00 GMT" });
  const type = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
  const protobuf = await openApi.v3(path, null, { accept: type.replace(".v1.0", "@v1.0") });
  t.equal(protobuf.headers["content-type"], type);
  t.equal(
    Buffer.from(protobuf.body as Uint8Array)
      .subarray(0, 7)
      .toString("latin1"),
    "\n\x053.0.0",
  );
  t.match(await openApi.v3(path, null, { accept: "text/html" }), { status: 406, headers: {} });
  t.equal((await openApi.v2("text/html", undefined)).status, 406);
  const index = await openApi.root(undefined);
  t.equal((await openApi.root(String(index.headers.etag))).status, 304, "the index has an ETag as well");
  t.match(await openApi.v3("apis/none/v1", null, {}), { status: 404, headers: {} }, "without a body, as in Kubernetes");
});

/** A scheme with a definition that has this many versions. */
function schemeWithVersions(count: number): Scheme {
  const openAPIV3Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true } as const;
  const names = Array.from({ length: count }, (_, index) => `v${index + 1}`);
  const versions = names.map((name) => ({ name, served: true, storage: name === "v1", schema: { openAPIV3Schema } }));
  const scheme = builtinScheme();
  const definition: CustomResourceDefinition = {
    metadata: { name: "things.example.com" },
    spec: { group: "example.com", scope: "Namespaced", names: { plural: "things", kind: "Thing" }, versions },
  };
  for (const name of names) scheme.register(createCustomKind(definition, name));
  return scheme;
}

t.test("OpenApi lists each document with its ETag, computed without the document", async (t) => {
  const scheme = schemeWithVersions(2);
  const openApi = new OpenApi(scheme, BOTH_LISTED, "v1.33.0", new FakeClock());
  const wrong: string[] = [];
  for (const [path, url] of Object.entries(bodyOf(await openApi.root(undefined)).paths as Json)) {
    const { headers } = await openApi.v3(path, null, {});
    const hash = encodeURIComponent(String(headers.etag).slice(1, -1));
    if ((url as Json).serverRelativeURL !== `/openapi/v3/${path}?hash=${hash}`) wrong.push(path);
  }
  t.same(wrong, []);
  const index = await openApi.root(undefined);
  const other = await new OpenApi(scheme, BOTH_LISTED, "v1.33.0", new FakeClock()).root(undefined);
  t.equal(index.headers.etag, other.headers.etag, "before and after the documents are read");
});

t.test("the document of a definition's version does not grow with the other versions", async (t) => {
  const lengths = await Promise.all(
    [1, 50].map(async (count) => {
      const openApi = new OpenApi(schemeWithVersions(count), BOTH_LISTED, "v1.33.0", new FakeClock());
      return JSON.stringify(await documentOf(openApi, "apis/example.com/v1")).length;
    }),
  );
  t.equal(lengths[1], lengths[0]);
  const openApi = new OpenApi(schemeWithVersions(1), BOTH_LISTED, "v1.33.0", new FakeClock());
  const { components } = await documentOf(openApi, "apis/example.com/v1");
  const schemas = (components as Json).schemas as Record<string, Json>;
  const marked = Object.keys(schemas).filter((name) => "x-kubernetes-group-version-kind" in schemas[name]!);
  t.same(marked, ["com.example.v1.Thing", "com.example.v1.ThingList"], "only its own kinds, as in Kubernetes");
});

function strike(listed: Differences, locations: readonly string[]): void {
  const kept = Object.entries(listed)
    .filter(([reason]) => reason !== UNEXPLAINED)
    .map(([reason, known]) => {
      return [
        reason,
        known.filter((one) => patternsOf([one]).some((p) => locations.some((location) => p.test(location)))),
      ] as const;
    });
  const patterns = kept.flatMap(([, known]) => patternsOf(known));
  const others = locations.filter((location) => !isExplained(location, { patterns }));
  const all = [...kept, ...(others.length > 0 ? [[UNEXPLAINED, others] as const] : [])];
  const left = Object.fromEntries(all.filter(([, known]) => known.length > 0));
  writeFileSync(listPath, `${JSON.stringify(left, undefined, 1)}\n`);
}

t.test("OpenApi describes every operation, parameter and response in v2", async (t) => {
  const openApi = new OpenApi(builtinScheme(), ONE_SERVED, "v1.33.0", new FakeClock());
  const { paths } = bodyOf(await openApi.v2("application/json", undefined)) as {
    readonly paths: Record<string, Record<string, Json | readonly Json[]>>;
  };
  const undescribed: string[] = [];
  const check = (name: string, subject: Json): void => {
    if (typeof subject.description !== "string" || subject.description === "") undescribed.push(name);
  };
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const parameters = (Array.isArray(operation) ? operation : (operation as Json).parameters) as Json[] | undefined;
      // Kubernetes does not describe bodies either: their schema is described.
      for (const each of parameters ?? []) if (each.in !== "body") check(`${path} ${method} ${each.name}`, each);
      if (Array.isArray(operation)) continue;
      check(`${path} ${method}`, operation as Json);
      const responses = Object.entries((operation as Json).responses as Record<string, Json>);
      for (const [code, response] of responses) check(`${path} ${method} ${code}`, response);
    }
  }
  t.same(undescribed, []);
});

t.test("OpenApi describes every definition and every field in v2", async (t) => {
  const openApi = new OpenApi(builtinScheme(), ONE_SERVED, "v1.33.0", new FakeClock());
  const { definitions } = bodyOf(await openApi.v2("application/json", undefined)) as {
    readonly definitions: Record<string, Json>;
  };
  const undescribed: string[] = [];
  for (const [name, definition] of Object.entries(definitions)) {
    if (typeof definition.description !== "string") undescribed.push(name);
    for (const [field, { description }] of Object.entries((definition.properties ?? {}) as Record<string, Json>))
      if (typeof description !== "string") undescribed.push(`${name}.${field}`);
  }
  t.ok(Object.keys(definitions).length > 500);
  t.same(undescribed, []);
});
