/**
 * Long lists and maps of every field of every kind, through each verb that writes, from users with and without rights,
 * to a server with a small heap: the event loop is never held for long, and no request takes much memory.
 * `SVC_ATTACKS=all` (`make attacks`) tries every field; otherwise those that once took minutes, and some others.
 */
import t from "tap";
import { builtinKinds } from "../../api/builtin.ts";
import type { Kind } from "../../api/kind.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { membersOf } from "../../schema/members.ts";
import type { ListSchema, MapSchema, Schema } from "../../schema/schema.ts";
import { countValues } from "../../schema/value/check-values.ts";
import { valuesMax } from "../../schema/value/limits.ts";
import { createUnboundToken, type MeasuredServer, startMeasuredServer } from "./measured-server.ts";
import { type Cost, HEAP_MIB } from "./process-meter.ts";

const all = process.env.SVC_ATTACKS === "all";
/** `SVC_ATTACKS_PART=2/8`: all fields take half an hour. */
const [part = 0, parts = 1] = (process.env.SVC_ATTACKS_PART ?? "0/1").split("/").map(Number);
/** Values in a body; the server admits a few more. */
const VALUES = all ? valuesMax - 1000 : 20_000;
/** Items of lists that the server refuses unread or with 413, where the body can hold as many. */
const ITEMS = 100_000;
const BODY_MAX = 3 * 2 ** 20;
/**
 * CPU time of a turn of the event loop. A linear algorithm takes a fifth of this for the values; one that compares each
 * with each takes minutes.
 */
const MS_MAX = 500;
/** Several times what is measured. The peak includes garbage of the young generation, which takes up to 48 MiB. */
const MIB_MAX = 150;
/** What one request may cost; the costs above are repeated in the table of `make attacks`. */
const TURN_MS = 100;
const MEMORY_MIB = 50;
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

/** How many items a list has: as many as the server admits, or as many as a body can hold. */
type Amount = "admitted" | "refused";

function fill(make: (index: number) => unknown, amount: Amount): readonly unknown[] {
  const size = JSON.stringify(make(ITEMS)).length + 1;
  const values = countValues(make(VALUES), VALUES);
  const most = amount === "admitted" ? Math.floor(VALUES / values) : ITEMS;
  const count = Math.min(most, Math.floor((BODY_MAX * 0.9) / size));
  return Array.from({ length: count }, (_, index) => make(index));
}

function fillings({ schema }: Target, amount: Amount): Readonly<Record<string, unknown>> {
  if (schema.type === "map") {
    const make = (index: number) => [`k${index}`, sample(schema.values, 1)];
    const entries = fill(make, amount) as readonly [string, unknown][];
    return {
      keys: Object.fromEntries(entries),
      "bad keys": Object.fromEntries(entries.map(([k, v]) => [`_/${k}/-`, v])),
    };
  }
  const empty = schema.items.type === "string" ? "" : {};
  return {
    empty: fill(() => empty, amount),
    equal: fill(() => sample(schema.items, 1), amount),
    reversed: fill((index) => sample(schema.items, ITEMS - index), amount),
    complete: fill((index) => sample(schema.items, ITEMS - index, "all"), amount),
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
  readonly cost: Cost;
  readonly status: number;
  /** What exceeds a bound. */
  readonly problem: string | undefined;
}

async function measure(
  server: MeasuredServer,
  token: string,
  [type, line, body]: readonly [string, string, string],
): Promise<Result> {
  const sent = {
    line,
    body,
    ...(type.includes("+") ? { type: `application/${type}` } : {}),
    ...(type === TABLE ? { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" } : {}),
  };
  const [{ status, text, bytes }, cost] = await server.measure(async () => await server.send(sent, token));
  const isCostly = cost.ms > MS_MAX || memoryOf(cost) > MIB_MAX || bytes > ANSWER_MAX;
  const bad = isCostly || (status >= 500 && UNEXPECTED.test(text));
  const problem = bad ? `${type} ${line}: ${status}, ${bytes} bytes, ${describe(cost)}` : undefined;
  return { cost, status, problem };
}

function memoryOf({ heapMiB, residentMiB }: Cost): number {
  return Math.max(heapMiB, residentMiB);
}

function isBeyond(cost: Cost): boolean {
  return cost.ms > TURN_MS || memoryOf(cost) > MEMORY_MIB;
}

function describe(cost: Cost): string {
  return `${Math.round(cost.ms)} ms, ${Math.round(memoryOf(cost))} MiB`;
}

/** The most that requests of one verb or patch cost. */
class Extremes {
  readonly #ms = new Map<string, readonly [number, string]>();
  readonly #mib = new Map<string, readonly [number, string]>();
  readonly #beyond: string[] = [];
  /** Requests beyond a bound, and repetitions of them that were as well. */
  #exceeding = 0;
  #repeatedly = 0;
  count = 0;

  add(type: string, what: string, { cost, status }: Result): void {
    this.count++;
    const mib = memoryOf(cost);
    const text = `${what} | ${status}`;
    if (cost.ms > (this.#ms.get(type)?.[0] ?? -1)) this.#ms.set(type, [cost.ms, text]);
    if (mib > (this.#mib.get(type)?.[0] ?? -1)) this.#mib.set(type, [mib, text]);
    if (!isBeyond(cost)) return;
    this.#exceeding++;
    this.#beyond.push(`${type}: ${what}: ${status}, ${describe(cost)}`);
  }

  /** The request that was beyond a bound, repeated. */
  addAgain(cost: Cost): void {
    this.#beyond.push(`  repeated: ${describe(cost)}`);
    if (isBeyond(cost)) this.#repeatedly++;
  }

  toString(): string {
    const rows = [...this.#ms].map(([type, [ms, what]]) => {
      const [mib = 0, most = ""] = this.#mib.get(type) ?? [];
      return `| ${type} | ${what} | ${Math.round(ms)} | ${most} | ${Math.round(mib)} |`;
    });
    const head = "| verb or patch | field | status | longest turn, ms | field | status | most memory, MiB |";
    const beyond = `${this.#exceeding} beyond ${TURN_MS} ms or ${MEMORY_MIB} MiB, ${this.#repeatedly} when repeated`;
    return [head, "|---|---|---|---|---|---|---|", ...rows, `${this.count} requests, ${beyond}`, ...this.#beyond].join(
      "\n",
    );
  }
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
  await using server = await startMeasuredServer(t.testdir());
  const unbound = await createUnboundToken(server);
  for (const kind of builtinKinds) {
    const stored = STORED[kind.kind];
    if (stored !== undefined) await server.create(collectionOf(kind), { ...stored, metadata: { name: "x" } });
  }
  const targets = findTargets();
  t.ok(targets.length > 250, `${targets.length} lists and maps`);
  const nameOf = ({ kind, path }: Target): string => `${kind.kind} ${path.join(".")}`;
  const missing = SAMPLE.filter((name) => !targets.some((target) => nameOf(target) === name));
  t.same(missing, [], "the sample exists");
  const chosen = all
    ? targets.filter((_, index) => index % parts === part)
    : targets.filter((one, i) => i % STRIDE === 0 || SAMPLE.includes(nameOf(one)));
  const allowed = new Extremes();
  const refused = new Extremes();
  const send = async (user: string, token: string, target: Target, amount: Amount, results: Extremes) => {
    for (const [filling, value] of Object.entries(fillings(target, amount))) {
      const count = Object.keys(value as object).length;
      for (const request of requestsOf(target, value)) {
        const result = await measure(server, token, request);
        const what = `${nameOf(target)}, ${count} ${filling}`;
        if (result.problem !== undefined) t.fail(`${what}, ${user}: ${result.problem}`);
        results.add(request[0], what, result);
        // A collection of earlier garbage, or the compilation of code, falls on some request.
        if (isBeyond(result.cost))
          for (let n = 0; n < 3; n++) results.addAgain((await measure(server, token, request)).cost);
        if (user === "without rights" && !all) break;
      }
    }
  };
  for (const target of chosen) {
    await send("with rights", "admin", target, "admitted", allowed);
    if (all) await send("with rights", "admin", target, "refused", allowed);
    await send("without rights", unbound, target, all ? "refused" : "admitted", refused);
  }
  t.ok(server.rssMiB() < HEAP_MIB + 250, `${Math.round(server.rssMiB())} MiB of memory are kept`);
  if (!all) return;
  console.error(`With rights:\n${allowed}\n\nWithout rights:\n${refused}`);
});
