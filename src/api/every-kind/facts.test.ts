/**
 * Compares the built-in kinds with the facts about Kubernetes 1.33: kinds, types, fields, numbers, list types, merge
 * keys, defaults, enums, verbs, subresources, columns, selectors. `testdata/facts-missing.json` lists what is missing.
 *
 *     SVC_RECORD=1 node src/api/every-kind/facts.test.ts      rewrites the list
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";
import { membersOf } from "../../schema/members.ts";
import { type Field, type ObjectSchema, type Schema, schemaOf } from "../../schema/schema.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { everyKind } from "../../testing/api/every-kind.ts";
import { everySchema } from "../../testing/api/every-schema.ts";
import type { Kind } from "../kind.ts";
import { kubernetesGroup } from "../scheme.ts";

const shared = process.env.SVC_SHARED ?? new URL("../../../../shared", import.meta.url).pathname;
const listPath = fileURLToPath(new URL("../../../testdata/facts-missing.json", import.meta.url));
const record = process.env.SVC_RECORD === "1";

function facts<T>(name: string): T {
  return JSON.parse(readFileSync(`${shared}/facts/${name}.json`, "utf8")) as T;
}

type Missing = Readonly<Record<string, readonly string[]>>;

class Findings {
  readonly #found = new Map<string, string[]>();

  add(subject: string, finding: string): void {
    const findings = this.#found.get(subject) ?? [];
    findings.push(finding);
    this.#found.set(subject, findings);
  }

  /** Adds a finding when `found` differs from the facts. */
  compare(subject: string, what: string, found: unknown, expected: unknown): void {
    if (deepEqual(found, expected)) return;
    this.add(subject, `${what}: ${JSON.stringify(found) ?? "nothing"}, not ${JSON.stringify(expected) ?? "nothing"}`);
  }

  all(): Missing {
    return Object.fromEntries([...this.#found].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

// Types: fields with numbers, shapes and markers.

interface FieldFact {
  readonly name?: string;
  readonly go: string;
  readonly num?: number;
  readonly required?: boolean;
  readonly omitempty?: boolean;
  readonly inline?: boolean;
  readonly listType?: string;
  readonly listMapKeys?: readonly string[];
  readonly mapType?: string;
  readonly patchStrategy?: string;
  readonly patchMergeKey?: string;
  readonly default?: unknown;
  readonly featureGate?: readonly string[];
}

interface TypeFact {
  readonly gvk?: string;
  readonly fields?: readonly FieldFact[];
  readonly underlying?: string;
  readonly aliasOf?: string;
  readonly encoding?: string;
  readonly values?: readonly string[];
  readonly enum?: boolean;
  readonly structType?: string;
}

type Types = Readonly<Record<string, TypeFact>>;

const encodings: Readonly<Record<string, string>> = {
  Time: "time",
  MicroTime: "microTime",
  Duration: "duration",
  Quantity: "quantity",
  IntOrString: "intOrString",
  FieldsV1: "fieldsV1",
  RawExtension: "rawExtension",
  apiextensionsJSON: "json",
};

/** Describes a Go type like `shapeOf` describes a schema: `[]core/v1.Container`, `map[string]quantity`. */
function shapeOfGo(types: Types, go: string): string {
  const bare = go.replace(/^\*/, "");
  if (bare === "[]byte") return "bytes";
  if (bare.startsWith("[]")) return `[]${shapeOfGo(types, bare.slice(2))}`;
  const map = /^map\[[^\]]+\](.+)$/.exec(bare)?.[1];
  if (map !== undefined) return `map[string]${shapeOfGo(types, map)}`;
  const fact = types[bare];
  if (fact?.encoding !== undefined) return encodings[fact.encoding] ?? fact.encoding;
  const behind = fact?.aliasOf ?? fact?.underlying;
  if (behind !== undefined) return shapeOfGo(types, behind);
  return { bool: "boolean", float64: "double", int: "int64" }[bare] ?? bare;
}

function shapeOf(schema: Schema): string {
  switch (schema.type) {
    case "list":
      return `[]${shapeOf(schema.items)}`;
    case "map":
      return `map[string]${shapeOf(schema.values)}`;
    case "object":
      return schema.name;
    case "integer":
    case "number":
      return schema.width;
    case "special":
    case "raw":
      return schema.format;
    case "either":
      return schema.name.slice(schema.name.indexOf(".") + 1);
    default:
      return schema.type;
  }
}

/** The type behind pointers, lists and maps. */
function elementOf(go: string): string {
  return go.replace(/^(?:\*|\[\]|map\[[^\]]+\])+/, "");
}

function compareType(findings: Findings, types: Types, name: string, schema: ObjectSchema): void {
  const fact = types[name];
  const recorded = new Set<string>();
  for (const field of fact?.fields ?? []) {
    if (field.name === undefined && field.num === undefined) continue;
    const entries = Object.entries(schema.fields);
    const [key, ours] =
      entries.find(([key, ours]) => (field.inline === true ? ours.number === field.num : key === field.name)) ?? [];
    if (key === undefined || ours === undefined) {
      findings.add(name, `no field ${field.name ?? field.go}`);
      continue;
    }
    recorded.add(key);
    compareField(findings, types, `${name}.${key}`, ours, field);
  }
  const more = Object.keys(schema.fields).filter((key) => !recorded.has(key) && key !== "kind" && key !== "apiVersion");
  findings.compare(name, "fields of its own", more, []);
  findings.compare(name, "atomic", schema.atomic === true, fact?.structType === "atomic");
}

function compareField(findings: Findings, types: Types, subject: string, ours: Field, fact: FieldFact): void {
  const schema = schemaOf(ours);
  const compare = (what: string, found: unknown, expected: unknown) => findings.compare(subject, what, found, expected);
  compare("number", ours.number, fact.num ?? 0);
  compare("type", shapeOf(schema), shapeOfGo(types, fact.go));
  // The value of a constant is not in the facts.
  if (!String(fact.default).startsWith("ref(")) compare("default", ours.default, fact.default);
  compare("patch strategy", ours.patchStrategy, fact.patchStrategy);
  compare("merge key", ours.patchMergeKey, fact.patchMergeKey);
  compare("granular", ours.granular === true, fact.mapType === "granular");
  if (fact.inline === true) return;
  compare("pointer", ours.presence === "pointer" || ours.nilable === true, fact.go.startsWith("*"));
  compare("always in JSON", ours.presence === "required" || ours.emitEmpty === true, fact.omitempty !== true);
  compare("required", ours.presence === "required" || ours.requiredInOpenApi === true, fact.required);
  if (schema.type === "list") {
    compare("list type", schema.listType, fact.listType ?? "atomic");
    compare("map keys", schema.mapKeys, fact.listMapKeys);
  }
  if (schema.type === "map") compare("atomic", schema.atomic === true, fact.mapType === "atomic");
  compare("Go type", goTypesOf(schema), namedGoType(types, fact.go));
  const element = types[elementOf(fact.go)];
  if (element?.enum === true) compare("enum", sorted(valuesOf(schema)), sorted(element.values));
}

/** The Go types of strings, string lists and resource lists have names, which decoding errors show. */
function namedGoType(types: Types, go: string): readonly string[] {
  const name = elementOf(go);
  const { underlying = "", encoding, fields } = types[name] ?? {};
  const isNamed = encoding === undefined && fields === undefined && /^(?:string|\[\]string|map\[core)/.test(underlying);
  return isNamed ? [name.slice(name.lastIndexOf("/") + 1)] : [];
}

/** Those of the schema and of its items. */
function goTypesOf(schema: Schema): readonly string[] {
  const items = schema.type === "list" ? schema.items : schema.type === "map" ? schema.values : undefined;
  return [...(schema.goType === undefined ? [] : [schema.goType]), ...(items === undefined ? [] : goTypesOf(items))];
}

/** Without the empty value, which means unset. */
function sorted(values: readonly string[] | undefined): readonly string[] {
  return (values ?? []).filter((value) => value !== "").sort();
}

function valuesOf(schema: Schema): readonly string[] | undefined {
  if (schema.type === "list") return valuesOf(schema.items);
  if (schema.type === "map") return valuesOf(schema.values);
  return schema.type === "string" ? schema.values : undefined;
}

/** The struct types that `roots` need. */
function reachable(types: Types, roots: readonly string[]): ReadonlySet<string> {
  const reached = new Set<string>();
  const follow = (name: string): void => {
    const fact = types[name];
    if (fact === undefined || reached.has(name) || fact.encoding !== undefined) return;
    const behind = fact.aliasOf ?? fact.underlying;
    if (behind !== undefined) follow(elementOf(behind));
    if (fact.fields === undefined) return;
    reached.add(name);
    for (const field of fact.fields)
      if (field.name !== undefined || field.num !== undefined) follow(elementOf(field.go));
  };
  for (const root of roots) follow(root);
  return reached;
}

// Kinds: names, verbs, subresources, columns, selectors.

interface SubresourceFact {
  readonly name: string;
  readonly kind: string;
  readonly group?: string;
  readonly version?: string;
  readonly verbs: readonly string[];
}

interface KindFact {
  readonly group: string;
  readonly svcGroup: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly servedByDefault: boolean;
  readonly verbs: readonly string[];
  readonly subresources: readonly SubresourceFact[];
  readonly storageKey?: string;
}

function compareKind(findings: Findings, subject: string, ours: Kind, fact: KindFact): void {
  const compare = (what: string, found: unknown, expected: unknown) => findings.compare(subject, what, found, expected);
  compare("plural", ours.plural, fact.plural);
  compare("singular", ours.singular, fact.singular);
  compare("namespaced", ours.namespaced, fact.namespaced);
  compare("short names", ours.shortNames, fact.shortNames);
  compare("categories", ours.categories, fact.categories);
  compare("verbs", [...ours.verbs].sort(), [...fact.verbs].sort());
  for (const expected of fact.subresources) {
    const found = ours.subresources.find(({ name }) => name === expected.name);
    if (found === undefined) {
      findings.add(subject, `no subresource ${expected.name}`);
      continue;
    }
    compare(`${expected.name}: kind`, found.kind, expected.kind);
    compare(`${expected.name}: verbs`, [...found.verbs].sort(), [...expected.verbs].sort());
    compare(`${expected.name}: group`, kubernetesGroup(found.group ?? ours.group), expected.group ?? fact.group);
    compare(`${expected.name}: version`, found.version ?? ours.version, expected.version ?? fact.version);
  }
  if (fact.storageKey === undefined) return;
  compare("list kind", ours.listKind, fact.listKind);
  const storageName = /^\/registry\/(?<name>[^{]+)\/\{/.exec(fact.storageKey)?.groups?.name;
  compare("storage name", kubernetesGroup(ours.storageName.split("/")[0] ?? ""), storageName?.split("/")[0]);
}

interface ColumnFact {
  readonly name: string;
  readonly type: string;
  readonly format?: string;
  readonly priority?: number;
}

interface ColumnFacts {
  readonly usesDefaultColumns: readonly string[];
  readonly defaultColumns: readonly ColumnFact[];
  readonly kinds: Readonly<
    Record<string, { readonly group: string; readonly kind: string; readonly columns: readonly ColumnFact[] }>
  >;
}

/** Kubernetes has columns for the kind, but its storage prints the default ones. */
const UNUSED_COLUMNS = "storage.k8s.io/CSIStorageCapacity";

function compareColumns(findings: Findings, subject: string, ours: Kind, facts: ColumnFacts): void {
  const group = kubernetesGroup(ours.group);
  const byDefault = facts.usesDefaultColumns.includes(group === "" ? ours.kind : `${group}/${ours.kind}`);
  const special = Object.values(facts.kinds).find((fact) => fact.group === group && fact.kind === ours.kind);
  const expected = byDefault ? facts.defaultColumns : special?.columns;
  if (expected === undefined || `${group}/${ours.kind}` === UNUSED_COLUMNS) return;
  const text = ({ name, type, format, priority }: ColumnFact) => `${name} ${type} ${format ?? ""} ${priority ?? 0}`;
  findings.compare(subject, "columns", ours.columns.map(text), expected.map(text));
}

interface SelectorFacts {
  readonly kinds: Readonly<Record<string, { readonly fields: readonly string[] }>>;
}

function compareSelectors(findings: Findings, subject: string, ours: Kind, facts: SelectorFacts): void {
  const expected = facts.kinds[subject]?.fields.filter((field) => !/^metadata\.name(?:space)?$/.test(field));
  if (expected === undefined) return;
  findings.compare(subject, "field selectors", Object.keys(ours.selectableFields).sort(), [...expected].sort());
}

function addSchemas(schema: Schema, schemas: Map<string, ObjectSchema>): void {
  if (schema.type === "list") addSchemas(schema.items, schemas);
  else if (schema.type === "map") addSchemas(schema.values, schemas);
  if (schema.type !== "object" || schemas.has(schema.name)) return;
  schemas.set(schema.name, schema);
  for (const field of Object.values(schema.fields)) addSchemas(schemaOf(field), schemas);
}

async function findAll(): Promise<Missing> {
  const findings = new Findings();
  const { types } = facts<{ readonly types: Types }>("types");
  const { kinds } = facts<{ readonly kinds: readonly KindFact[] }>("kinds");
  const columns = facts<ColumnFacts>("printer-columns");
  const selectors = facts<SelectorFacts>("field-selectors");
  const scheme = everyKind();
  // Of those that `--runtime-config` enables, resource.k8s.io is missing; beta-kinds.test.ts compares others with v1.
  const served = kinds.filter((fact) => {
    return fact.servedByDefault || scheme.byKind(fact.group, fact.version, fact.kind) !== undefined;
  });
  for (const fact of served) {
    const subject = `${fact.group === "" ? "" : `${fact.group}/`}${fact.version}/${fact.kind}`;
    const ours = scheme.byKind(fact.group, fact.version, fact.kind);
    if (ours === undefined) {
      findings.add(subject, "no such kind");
      continue;
    }
    compareKind(findings, subject, ours, fact);
    compareColumns(findings, subject, ours, columns);
    compareSelectors(findings, subject, ours, selectors);
  }
  const gvks = new Set(
    served.flatMap(({ group, version, kind, subresources }) => [
      `${group === "" ? "" : `${group}/`}${version}/${kind}`,
      ...subresources.map((sub) => `${sub.group ?? group}/${sub.version ?? version}/${sub.kind}`.replace(/^\//, "")),
    ]),
  );
  const roots = Object.keys(types).filter((name) => gvks.has(types[name]?.gvk ?? ""));
  const schemas = new Map(await everySchema());
  // Those of versions that are derived from others.
  for (const { schema } of scheme.kinds()) addSchemas(schema, schemas);
  for (const name of reachable(types, roots)) if (!schemas.has(name)) findings.add(name, "no such type");
  for (const [name, schema] of schemas) {
    // Our own types and those of CRI are not in the facts.
    if (types[name] !== undefined) compareType(findings, types, name, schema);
  }
  t.comment(`${served.length} kinds, ${schemas.size} types`);
  return findings.all();
}

t.test("nothing of Kubernetes 1.33 is missing except what facts-missing.json lists", async (t) => {
  if (!existsSync(shared)) {
    t.comment("shared/ is not present: the comparison with the facts is left out");
    return;
  }
  const found = await findAll();
  if (record) writeFileSync(listPath, `${JSON.stringify(found, undefined, 1)}\n`);
  const listed = JSON.parse(readFileSync(listPath, "utf8")) as Missing;
  for (const subject of new Set([...Object.keys(found), ...Object.keys(listed)])) {
    const [now, recorded] = [found[subject] ?? [], listed[subject] ?? []];
    t.same(
      now.filter((finding) => !recorded.includes(finding)),
      [],
      `${subject}: nothing else is missing`,
    );
    t.same(
      recorded.filter((finding) => !now.includes(finding)),
      [],
      `${subject}: nothing is listed that is there (SVC_RECORD=1 strikes it)`,
    );
  }
});

t.test("the fields of a schema have unique numbers and names", async (t) => {
  for (const [name, schema] of await everySchema()) {
    const numbers = Object.values(schema.fields).flatMap(({ number }) => (number === 0 ? [] : [number]));
    t.equal(new Set(numbers).size, numbers.length, `${name}: numbers`);
    const names = membersOf(schema).map((member) => member.name);
    t.equal(new Set(names).size, names.length, `${name}: names`);
  }
});
