/** Every integer field of some kinds, with numbers that Go's integers refuse, through each type of patch and apply. */
import t from "tap";
import { builtinScheme } from "../../api/builtin.ts";
import { membersOf } from "../../schema/members.ts";
import type { IntegerSchema, Schema } from "../../schema/schema.ts";
import type { TestServer } from "../../testing/apiserver/server-fixture.ts";
import { answerTo, startTableServer } from "./table.ts";

type Json = Readonly<Record<string, unknown>>;

const container = { name: "c", image: "i" };
const template = { metadata: { labels: { a: "b" } }, spec: { containers: [container] } };
const workload = { selector: { matchLabels: { a: "b" } }, template };
const jobTemplate = { spec: { template: { spec: { containers: [container], restartPolicy: "Never" } } } };

/** Objects whose fields are patched: group, version, kind and a valid object without its name. */
const OBJECTS: readonly (readonly [string, string, string, Json])[] = [
  ["", "v1", "Pod", { spec: { containers: [container] } }],
  ["", "v1", "Service", { spec: { ports: [{ port: 80 }] } }],
  ["", "v1", "ReplicationController", { spec: { selector: { a: "b" }, template } }],
  ["", "v1", "Node", {}],
  ["", "v1", "Endpoints", {}],
  ["apps", "v1", "Deployment", { spec: workload }],
  ["apps", "v1", "StatefulSet", { spec: { ...workload, serviceName: "s" } }],
  ["apps", "v1", "DaemonSet", { spec: workload }],
  ["apps", "v1", "ControllerRevision", { revision: 1, data: { a: 1 } }],
  ["batch", "v1", "Job", jobTemplate],
  ["batch", "v1", "CronJob", { spec: { schedule: "* * * * *", jobTemplate } }],
  [
    "autoscaling",
    "v2",
    "HorizontalPodAutoscaler",
    { spec: { maxReplicas: 2, scaleTargetRef: { kind: "K", name: "n" } } },
  ],
  ["policy", "v1", "PodDisruptionBudget", { spec: { minAvailable: 1 } }],
  ["scheduling.k8s.io", "v1", "PriorityClass", { value: 1 }],
  ["coordination.k8s.io", "v1", "Lease", {}],
  ["storage.k8s.io", "v1", "CSIDriver", {}],
];

interface IntegerField {
  /** Names of members, and 0 for the item of a list. */
  readonly path: readonly (string | number)[];
  readonly width: IntegerSchema["width"];
}

function integerFields(schema: Schema, path: IntegerField["path"] = [], outer: readonly Schema[] = []): IntegerField[] {
  if (outer.includes(schema)) return [];
  switch (schema.type) {
    case "object":
      return membersOf(schema).flatMap((member) =>
        // The server sets these.
        member.name === "metadata" ? [] : integerFields(member.schema, [...path, member.name], [...outer, schema]),
      );
    case "list":
      return integerFields(schema.items, [...path, 0], outer);
    case "map":
      return integerFields(schema.values, [...path, "key"], outer);
    case "integer":
      return [{ path, width: schema.width }];
    default:
      return [];
  }
}

/** A value of which only the field is set, as JSON text. */
function textOf(path: IntegerField["path"], number: string): string {
  return path.reduceRight<string>(
    (text, step) => (typeof step === "number" ? `[${text}]` : `{${JSON.stringify(step)}:${text}}`),
    number,
  );
}

const PATCHES: readonly (readonly [string, (path: IntegerField["path"], number: string) => string])[] = [
  ["application/merge-patch+json", textOf],
  [
    "application/json-patch+json",
    ([first = "", ...path], number) => `[{"op":"add","path":"/${first}","value":${textOf(path, number)}}]`,
  ],
];

const UNSAFE = "9007199254740993";
const REFUSED = ["1.0", "1e1", "1E0", "0.5", "99999999999999999999", UNSAFE];

async function create(server: TestServer, [group, version, kind, object]: (typeof OBJECTS)[number]): Promise<string> {
  const found = builtinScheme().byKind(group, version, kind)!;
  const prefix = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const path = `${prefix}${found.namespaced ? "/namespaces/default" : ""}/${found.plural}`;
  const body = { apiVersion: group === "" ? version : `${group}/${version}`, kind, metadata: { name: "n" }, ...object };
  const answer = await answerTo(server, `POST ${path}`, { body });
  t.match(answer, /^201/, `${kind}: ${answer}`);
  return `${path}/n`;
}

t.test("JSON and merge patches refuse what an integer field of Go cannot hold, in every field", async (t) => {
  await using server = await startTableServer();
  let fields = 0;
  for (const object of OBJECTS) {
    const path = await create(server, object);
    const [group, version, kind] = object;
    const accepted: string[] = [];
    for (const field of integerFields(builtinScheme().byKind(group, version, kind)!.schema)) {
      fields++;
      const number = REFUSED[fields % REFUSED.length]!;
      const [type, patchOf] = PATCHES[fields % PATCHES.length]!;
      const body = patchOf(field.path, number);
      const answer = await answerTo(server, `PATCH ${path}?dryRun=All`, { body, type });
      const reason = `cannot unmarshal number ${number} into Go struct field `;
      if (!answer.startsWith("422 ") || !answer.includes(reason)) accepted.push(`${type} ${body}: ${answer}`);
    }
    t.same(accepted, [], kind);
  }
  t.ok(fields > 500, `${fields} fields`);
});

t.test("strategic patches and apply accept whole numbers like 1.0, and refuse integers out of range", async (t) => {
  await using server = await startTableServer();
  for (const object of OBJECTS) {
    const path = await create(server, object);
    const [group, version, kind] = object;
    const apiVersion = group === "" ? version : `${group}/${version}`;
    const wrong: string[] = [];
    const fields = integerFields(builtinScheme().byKind(group, version, kind)!.schema);
    // Items of lists need their keys; apply resets the status.
    for (const field of fields.filter(({ path }) => !path.includes(0) && path[0] !== "status")) {
      const large = field.width === "int32" ? "4294967297" : UNSAFE;
      const rows: readonly (readonly [string, RegExp])[] = [
        ["1.0", /^(?!.*cannot convert)/],
        ["0.5", /cannot convert float64 to int/],
        [large, new RegExp(`^4.*: cannot convert number ${large} for `)],
      ];
      for (const [number, expected] of rows) {
        const text = textOf(field.path, number);
        const patch = await answerTo(server, `PATCH ${path}?dryRun=All`, {
          type: "application/strategic-merge-patch+json",
          body: text,
        });
        const apply = await answerTo(server, `PATCH ${path}?dryRun=All&fieldManager=m&force=true`, {
          type: "application/apply-patch+yaml",
          body: `{"apiVersion":"${apiVersion}","kind":"${kind}","metadata":{"name":"n"},${text.slice(1)}`,
        });
        wrong.push(...[patch, apply].filter((answer) => !expected.test(answer)).map((answer) => `${text}: ${answer}`));
      }
    }
    t.same(wrong, [], kind);
  }
});
