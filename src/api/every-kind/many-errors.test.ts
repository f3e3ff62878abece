/** Values with more errors than a call has arguments: validation stops early, and does not fail. */
import t from "tap";
import { decode } from "../../schema/decode/decode.ts";
import { membersOf } from "../../schema/members.ts";
import type { Schema } from "../../schema/schema.ts";
import { builtinKinds } from "../builtin.ts";
import type { ApiObject } from "../kind.ts";

const MANY = 150_000;
const container = { name: "c", image: "i" };

const OBJECTS: readonly (readonly [kind: string, object: object, field: string])[] = [
  ["HorizontalPodAutoscaler", { spec: { behavior: { scaleUp: { policies: Array(MANY).fill({}) } } } }, "policies"],
  ["Pod", { spec: { containers: [container], dnsConfig: { nameservers: Array(MANY).fill("x") } } }, "nameservers"],
  [
    "Pod",
    {
      spec: {
        containers: [container],
        volumes: [{ name: "v", quobyte: { registry: ",".repeat(MANY), volume: "v" } }],
      },
    },
    "registry",
  ],
];

t.test("kinds report a bounded number of errors of long lists", async (t) => {
  for (const [name, object, field] of OBJECTS) {
    const kind = builtinKinds.find(({ kind, version }) => kind === name && version !== "v1beta1")!;
    const { value } = decode(kind.schema, { metadata: { name: "x" }, ...object });
    const errors = kind.strategy.validate?.(value as ApiObject) ?? [];
    const found = errors.filter((error) => error.field.includes(field));
    t.ok(found.length > 0 && found.length < 300, `${name} ${field}: ${found.length}`);
  }
});

type Path = readonly (string | number)[];

/** Paths of the lists and maps of a kind that no kind before has. */
function listsOf(schema: Schema, path: Path, seen: Set<Schema>): readonly Path[] {
  if (schema.type === "object") {
    if (seen.has(schema)) return [];
    seen.add(schema);
    return membersOf(schema).flatMap((member) => listsOf(member.schema, [...path, member.name], seen));
  }
  if (schema.type === "list") return [path, ...listsOf(schema.items, [...path, 0], seen)];
  return schema.type === "map" ? [path] : [];
}

const ITEMS = 2000;
/** Each list may report a hundred errors, some for two reasons, and the lists within its first items as well. */
const ERRORS_MAX = 1000;

t.test("kinds report a bounded number of errors of each list and map", async (t) => {
  let lists = 0;
  const seen = new Set<Schema>();
  for (const kind of builtinKinds) {
    const many: string[] = [];
    for (const path of listsOf(kind.schema, [], seen)) {
      lists++;
      for (const item of ["{}", '"!"', '""', "-1"]) {
        const isMap = Array.from({ length: ITEMS }, (_, index) => `"!${index}":${item}`).join(",");
        for (const value of [`[${Array(ITEMS).fill(item).join(",")}]`, `{${isMap}}`]) {
          const text = path.reduceRight<string>(
            (inner, step) => (typeof step === "number" ? `[${inner}]` : `{${JSON.stringify(step)}:${inner}}`),
            value,
          );
          const decoded = decode(kind.schema, { metadata: { name: "x" }, ...JSON.parse(text) });
          if (decoded.errors.length > 0) continue;
          const errors = kind.strategy.validate?.(decoded.value as ApiObject) ?? [];
          if (errors.length > ERRORS_MAX) many.push(`${path.join(".")} of ${item}: ${errors.length}`);
        }
      }
    }
    t.same(many, [], `${kind.kind} ${kind.version}`);
  }
  t.ok(lists > 200, `${lists} lists`);
});
