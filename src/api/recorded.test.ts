/**
 * Creates that a Kubernetes 1.33 server answered, replayed through a kind's decoding, defaults and validation:
 * informational counts, each with a floor that only rises.
 */
import { existsSync, readFileSync } from "node:fs";
import t from "tap";
import { decode } from "../schema/decode.ts";
import { applyDefaults } from "../schema/default.ts";
import type { FieldError } from "../schema/field-error.ts";
import { encodeJson } from "../schema/json.ts";
import { validate } from "../schema/validate.ts";
import { builtinScheme } from "./builtin.ts";
import type { ApiObject, Kind } from "./kind.ts";
import { validateObjectMeta } from "./meta/object-meta-validation.ts";

interface Case {
  readonly id: string;
  readonly kind: string;
  readonly method: string;
  readonly path: string;
  readonly query?: string;
  readonly body?: unknown;
  readonly expect: {
    readonly code: number;
    readonly causes?: readonly { readonly reason: string; readonly field: string }[];
    readonly object?: Readonly<Record<string, unknown>>;
  };
}

const shared = process.env.SVC_SHARED ?? new URL("../../../shared", import.meta.url).pathname;
const folder = `${shared}/oracles/recorded-validation/`;
const scheme = builtinScheme();

function readCases(file: string): readonly Case[] {
  return readFileSync(`${folder}${file}`, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Case);
}

const collection = /^\/(?:api|apis\/([^/]+))\/([^/]+)\/(?:namespaces\/([^/]+)\/)?([^/]+)$/;

function kindOf(one: Case): { readonly kind: Kind; readonly namespace: string | undefined } | undefined {
  const [, group = "", version = "", namespace, plural = ""] = collection.exec(one.path) ?? [];
  const kind = one.method === "POST" ? scheme.byResource(group, version, plural) : undefined;
  return kind === undefined || typeof one.body !== "object" ? undefined : { kind, namespace };
}

type Answer =
  | { readonly code: 400 }
  | { readonly code: 422; readonly errors: readonly FieldError[] }
  | { readonly code: 201; readonly object: ApiObject };

/** What a create does to an object before it is stored, but for admission. */
function create(kind: Kind, namespace: string | undefined, one: Case): Answer {
  const decoded = decode(kind.schema, one.body);
  const strict = one.query?.includes("fieldValidation=Strict") === true;
  if (decoded.errors.length > 0 || (strict && decoded.unknown.length > 0)) return { code: 400 };
  const sent = decoded.value as ApiObject;
  const wrongNamespace = (sent.metadata?.namespace ?? namespace) !== namespace;
  if (wrongNamespace) return { code: 400 };
  const named = { ...sent, metadata: { ...sent.metadata, ...(namespace === undefined ? {} : { namespace }) } };
  const { strategy } = kind;
  const defaulted = applyDefaults(kind.schema, named);
  const full = strategy.setDefaults?.(defaulted) ?? defaulted;
  const object = strategy.prepareForCreate?.(full) ?? full;
  const metadata = { ...object.metadata, name: object.metadata?.name || (object.metadata?.generateName ?? "") };
  const errors = [
    ...validateObjectMeta(metadata, kind),
    ...validate(kind.schema, object),
    ...(strategy.validate?.(object) ?? []),
  ];
  return errors.length === 0 ? { code: 201, object } : { code: 422, errors };
}

function agrees(one: Case, answer: Answer): boolean {
  if (answer.code !== one.expect.code) return false;
  if (answer.code !== 422) return true;
  const key = (cause: { readonly reason: string; readonly field: string }) => `${cause.reason} ${cause.field}`;
  const wanted = new Set((one.expect.causes ?? []).map(key));
  const found = new Set(answer.errors.map((error) => key({ reason: error.type, field: error.field })));
  return wanted.size === found.size && [...wanted].every((cause) => found.has(cause));
}

const floors: Readonly<Record<string, number>> = {
  "/ConfigMap": 100,
  "/Event": 64,
  "/Namespace": 19,
  "/Node": 27,
  "/Pod": 997,
  "/Secret": 33,
  "/ServiceAccount": 22,
  "coordination.svc.io/Lease": 33,
  "events.svc.io/Event": 47,
};

t.test("validation agrees with recorded creates", async (t) => {
  if (!existsSync(folder)) {
    t.comment("shared/ is not present: recorded creates left out");
    return;
  }
  const counts = new Map<string, { agreed: number; all: number }>();
  for (const one of [...readCases("create-1.jsonl"), ...readCases("create-2.jsonl")]) {
    const target = kindOf(one);
    if (target === undefined) continue;
    const name = `${target.kind.group}/${target.kind.kind}`;
    const count = counts.get(name) ?? { agreed: 0, all: 0 };
    counts.set(name, count);
    count.all++;
    const answer = create(target.kind, target.namespace, one);
    if (agrees(one, answer)) count.agreed++;
    else if (process.env.SVC_SHOW === name)
      console.log(
        JSON.stringify({
          id: one.id,
          expect: one.expect.code,
          causes: one.expect.causes,
          got: answer.code === 422 ? answer.errors.map((e) => `${e.type} ${e.field}`) : answer.code,
        }),
      );
  }
  for (const [name, { agreed, all }] of counts) {
    t.comment(`${name}: ${agreed}/${all}`);
    t.ok(agreed >= (floors[name] ?? 0), `${name} agrees in at least ${floors[name] ?? 0} of ${all}`);
  }
});

t.test("defaults agree with recorded creates", async (t) => {
  if (!existsSync(folder)) {
    t.comment("shared/ is not present: recorded defaults left out");
    return;
  }
  let agreed = 0;
  let all = 0;
  for (const one of readCases("defaulting.jsonl")) {
    const target = kindOf(one);
    if (target === undefined || one.expect.object === undefined) continue;
    all++;
    const answer = create(target.kind, target.namespace, one);
    if (answer.code !== 201) continue;
    const found = JSON.parse(encodeJson(target.kind.schema, answer.object).toString());
    const same = sameBut(found, one.expect.object);
    if (same) agreed++;
    else if (process.env.SVC_SHOW === "defaults")
      console.log(one.id, JSON.stringify(found), JSON.stringify(one.expect.object));
  }
  t.comment(`defaults: ${agreed}/${all}`);
  t.ok(agreed >= 57);
});

/** Equal but for what the server adds when it stores. */
function sameBut(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): boolean {
  const bare = ({ metadata, ...rest }: Readonly<Record<string, unknown>>) => {
    const { uid: _, creationTimestamp: __, managedFields: ___, ...kept } = metadata as Record<string, unknown>;
    return sorted(withoutAdmission({ ...rest, metadata: kept }));
  };
  return JSON.stringify(bare(a)) === JSON.stringify(bare(b));
}

const admitted = new Set(["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]);

/** Without the tolerations and taints that admission plugins add. */
function withoutAdmission(object: Readonly<Record<string, unknown>>): unknown {
  if (typeof object.spec !== "object" || object.spec === null) return object;
  const spec: Record<string, unknown> = { ...object.spec };
  for (const name of ["tolerations", "taints"]) {
    const list = spec[name];
    if (!Array.isArray(list)) continue;
    const kept = list.filter((item: { readonly key?: string }) => !admitted.has(item.key ?? ""));
    if (kept.length === 0) delete spec[name];
    else spec[name] = kept;
  }
  return { ...object, spec };
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, sorted(member)]),
  );
}
