/**
 * Long lists and maps of every field of every kind, through each verb that writes: the event loop is never held for
 * long. `SVC_ATTACKS=all` (`make attacks`) tries every field; otherwise those that once took minutes, and some others.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import t from "tap";
import { builtinKinds } from "../../api/builtin.ts";
import type { Kind } from "../../api/kind.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { membersOf } from "../../schema/members.ts";
import type { ListSchema, MapSchema, Schema } from "../../schema/schema.ts";
import { countValues } from "../../schema/value/check-values.ts";
import { valuesMax } from "../../schema/value/limits.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { TurnMeter } from "../../testing/std/turn-meter.ts";

const all = process.env.SVC_ATTACKS === "all";
/** Values in a body; the server admits a few more. */
const VALUES = all ? valuesMax - 1000 : 20_000;
const BODY_MAX = 3 * 2 ** 20;
/**
 * CPU time of a turn of the event loop. A linear algorithm takes a fifth of this for the values; one that compares each
 * with each takes minutes.
 */
const MS_MAX = 500;
/** The fields of the sample, and every n-th other one. */
const SAMPLE = [
  "ConfigMap metadata.finalizers",
  "ConfigMap metadata.ownerReferences",
  "CSINode spec.drivers",
  "Node status.addresses",
  "Pod spec.volumes",
  "ResourceQuota spec.scopes",
  "RuntimeClass scheduling.tolerations",
  "LocalSubjectAccessReview spec.resourceAttributes.labelSelector.requirements",
];
const STRIDE = 40;
/** An answer is never much longer than the request. */
const ANSWER_MAX = 3 * BODY_MAX;

type Path = readonly (string | number)[];

interface Target {
  readonly kind: Kind;
  readonly path: Path;
  readonly schema: ListSchema | MapSchema;
}

/** The lists and maps of the kinds; those of a type that several kinds contain are listed once. */
function findTargets(): readonly Target[] {
  const seen = new Set<Schema>();
  const targets: Target[] = [];
  const visit = (kind: Kind, schema: Schema, path: Path): void => {
    if (schema.type === "object") {
      if (seen.has(schema)) return;
      seen.add(schema);
      for (const member of membersOf(schema)) visit(kind, member.schema, [...path, member.name]);
    } else if (schema.type === "list" || schema.type === "map") {
      targets.push({ kind, path, schema });
      if (schema.type === "list") visit(kind, schema.items, [...path, 0]);
      else visit(kind, schema.values, [...path, "k"]);
    } else if (schema.type === "either") visit(kind, schema.object.schema(), path);
  };
  // Metadata is tried on a kind whose object is stored.
  const [stored, others] = [true, false].map((has) =>
    builtinKinds.filter(({ kind }) => Object.hasOwn(STORED, kind) === has),
  );
  for (const kind of [...(stored ?? []), ...(others ?? [])]) visit(kind, kind.schema, []);
  return targets;
}

/** Which members a value has: those that are required and scalars, or all scalars. */
type Extent = "most" | "all";

/** A value in which `seed` makes strings and numbers different. */
function sample(schema: Schema, seed: number, extent: Extent = "most"): unknown {
  switch (schema.type) {
    case "string":
      return schema.values?.[0] ?? `a${seed}`;
    case "integer":
    case "number":
      return seed;
    case "boolean":
      return true;
    case "bytes":
      return "";
    case "special":
      return SPECIAL[schema.format];
    case "enum":
      return Object.keys(schema.numbers)[0];
    case "list":
      return [];
    case "object": {
      const members = membersOf(schema).filter(({ field, schema: member }) => {
        const isScalar = !["object", "list", "map", "raw", "either"].includes(member.type);
        const isSet = isScalar && (extent === "all" || field.presence === "optional");
        return field.oneOf === undefined && (field.presence === "required" || isSet);
      });
      return Object.fromEntries(members.map(({ name, schema: member }) => [name, sample(member, seed, extent)]));
    }
    default:
      return {};
  }
}

const SPECIAL = {
  time: "2026-01-02T03:04:05Z",
  microTime: "2026-01-02T03:04:05.000000Z",
  duration: "1s",
  quantity: "1",
  intOrString: 1,
} as const;

/** As many as a body can hold. */
function fill(make: (index: number) => unknown): readonly unknown[] {
  const size = JSON.stringify(make(VALUES)).length + 16;
  const values = countValues(make(VALUES), VALUES);
  const count = Math.min(Math.floor(VALUES / values), Math.floor((BODY_MAX * 0.9) / size));
  return Array.from({ length: count }, (_, index) => make(index));
}

function fillings({ schema }: Target): Readonly<Record<string, unknown>> {
  if (schema.type === "map") {
    const entries = fill((index) => [`k${index}`, sample(schema.values, 1)]) as readonly [string, unknown][];
    return {
      keys: Object.fromEntries(entries),
      "bad keys": Object.fromEntries(entries.map(([k, v]) => [`_/${k}/-`, v])),
    };
  }
  const empty = schema.items.type === "string" ? "" : {};
  return {
    empty: fill(() => empty),
    equal: fill(() => sample(schema.items, 1)),
    reversed: fill((index) => sample(schema.items, VALUES - index)),
    complete: fill((index) => sample(schema.items, VALUES - index, "all")),
  };
}

function nest(path: Path, value: unknown): unknown {
  return path.reduceRight<unknown>((inner, step) => (typeof step === "number" ? [inner] : { [step]: inner }), value);
}

function collectionOf(kind: Kind): string {
  const prefix = kind.group === "" ? "/api/v1" : `/apis/${kubernetesGroup(kind.group)}/${kind.version}`;
  return `${prefix}/${kind.namespaced ? "namespaces/default/" : ""}${kind.plural}`;
}

/** The body that sets the target's field, with a name. */
function bodyOf({ kind, path }: Target, value: unknown): object {
  const body = nest(path, value) as { readonly metadata?: object };
  const apiVersion = kind.group === "" ? "v1" : `${kubernetesGroup(kind.group)}/${kind.version}`;
  return { ...body, apiVersion, kind: kind.kind, metadata: { ...body.metadata, name: "x" } };
}

const TABLE = "create, as a table";

/** Requests with the value: create, update, each type of patch, and apply. */
function* requestsOf(target: Target, value: unknown): Generator<readonly [string, string, string]> {
  const { kind, path } = target;
  const collection = collectionOf(kind);
  const body = JSON.stringify(bodyOf(target, value));
  yield ["create", `POST ${collection}?dryRun=All`, body];
  yield [TABLE, `POST ${collection}?dryRun=All`, body];
  if (!kind.verbs.includes("patch")) return;
  const item = `${collection}/x?dryRun=All`;
  yield ["update", `PUT ${item}`, body];
  yield ["merge-patch+json", `PATCH ${item}`, body];
  yield ["strategic-merge-patch+json", `PATCH ${item}`, body];
  yield ["apply-patch+yaml", `PATCH ${item}&fieldManager=a&force=true`, body];
  const list = path.at(-1);
  if (!Array.isArray(value) || typeof list !== "string") return;
  const deletions = value.map((each) => (typeof each === "object" ? { ...each, $patch: "delete" } : each));
  const directives = { [list]: deletions, [`$setElementOrder/${list}`]: value };
  const halves = { [list]: deletions.slice(0, deletions.length / 2) };
  const around = nest(path.slice(0, -1), countValues(directives, VALUES) > VALUES ? halves : directives);
  yield ["strategic-merge-patch+json", `PATCH ${item}`, JSON.stringify(around)];
  const operations = [{ op: "add", path: `/${path.join("/")}`, value }];
  for (let n = 0; n < 2000; n++) operations.push({ op: "add", path: `/${path.join("/")}/0`, value: value[0] });
  yield ["json-patch+json", `PATCH ${item}`, JSON.stringify(operations)];
}

/** Kubernetes answers some invalid bindings, patches and applied configurations with 500, without a reason. */
const UNEXPECTED = /"reason":"InternalError"/;

interface Result {
  readonly ms: number;
  readonly status: number;
  /** What exceeds a bound. */
  readonly problem: string | undefined;
}

/** Sends the request and measures the longest turn of the event loop. */
async function measure(
  server: TestServer,
  meter: TurnMeter,
  type: string,
  line: string,
  body: string,
): Promise<Result> {
  const headers = {
    ...(type.includes("+") ? { "content-type": `application/${type}` } : {}),
    ...(type === TABLE ? { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" } : {}),
  };
  await nextTurn();
  meter.take();
  const { status, bytes } = await server.send(line, { body, headers });
  const ms = Math.round(meter.take());
  const bad = ms > MS_MAX || bytes.length > ANSWER_MAX || (status >= 500 && UNEXPECTED.test(bytes.toString()));
  const problem = bad ? `${type} ${line}: ${status} after ${ms} ms, ${bytes.length} bytes` : undefined;
  return { ms, status, problem };
}

/** The kinds whose minimal object is valid, so that updates and patches reach validation. */
const STORED: Readonly<Record<string, object>> = {
  ConfigMap: {},
  Pod: { spec: { containers: [{ name: "c", image: "i" }] } },
  Service: { spec: { ports: [{ port: 1 }] } },
  Node: {},
  CSINode: { spec: { drivers: [] } },
  ResourceQuota: {},
  RuntimeClass: { handler: "x" },
  ClusterRole: { rules: [] },
  NetworkPolicy: { spec: { podSelector: {} } },
  EndpointSlice: { addressType: "IPv4", endpoints: [] },
  Endpoints: {},
};

t.setTimeout(3_600_000);

t.test("long lists and maps of every field are handled or refused in time", async (t) => {
  await using server = await startTestServer();
  for (const kind of builtinKinds) {
    const stored = STORED[kind.kind];
    if (stored !== undefined) {
      const { status } = await server.send(`POST ${collectionOf(kind)}`, {
        body: { ...stored, metadata: { name: "x" } },
      });
      t.equal(status, 201, kind.kind);
    }
  }
  const targets = findTargets();
  t.ok(targets.length > 250, `${targets.length} lists and maps`);
  const nameOf = ({ kind, path }: Target): string => `${kind.kind} ${path.join(".")}`;
  const missing = SAMPLE.filter((name) => !targets.some((target) => nameOf(target) === name));
  t.same(missing, [], "the sample exists");
  const chosen = all ? targets : targets.filter((one, i) => i % STRIDE === 0 || SAMPLE.includes(nameOf(one)));
  using meter = new TurnMeter();
  const longest = new Map<string, string>();
  const most = new Map<string, number>();
  for (const target of chosen) {
    for (const [filling, value] of Object.entries(fillings(target))) {
      for (const [type, line, body] of requestsOf(target, value)) {
        const { ms, status, problem } = await measure(server, meter, type, line, body);
        if (problem !== undefined) t.fail(`${nameOf(target)}, ${filling}: ${problem}`);
        if (ms <= (most.get(type) ?? -1)) continue;
        most.set(type, ms);
        longest.set(type, `| ${type} | ${nameOf(target)}, ${filling} | ${status} | ${ms} |`);
      }
    }
  }
  if (!all) return;
  const head = "| verb or patch | field | status | longest turn, ms |\n|---|---|---|---|";
  console.error(`${head}\n${[...longest.values()].join("\n")}`);
});
