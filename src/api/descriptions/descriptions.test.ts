import { readdirSync } from "node:fs";
import t from "tap";
import { membersOf } from "../../schema/members.ts";
import { everySchema } from "../../testing/api/every-schema.ts";
import { builtinScheme } from "../builtin.ts";
import { accessTexts } from "./access.ts";
import { coordinationTexts } from "./coordination.ts";
import { coreTexts } from "./core.ts";
import { loadDescriptions } from "./descriptions.ts";
import { extensionTexts } from "./extensions.ts";
import { legacyVolumeTexts } from "./legacy-volumes.ts";
import { metaTexts } from "./meta.ts";
import { metricsTexts } from "./metrics.ts";
import { networkingTexts } from "./networking.ts";
import { podStatusTexts } from "./pod-status.ts";
import { podTexts } from "./pods.ts";
import { resourceTexts } from "./resource.ts";
import { schedulingTexts } from "./scheduling.ts";
import type { Texts } from "./texts.ts";
import { volumeTexts } from "./volumes.ts";
import { workloadTexts } from "./workloads.ts";

/** Types that are scalars here, and the description of lists. */
const noSchemas = ["List", "Time", "MicroTime", "Duration", "FieldsV1"].map((name) => `meta/v1.${name}`);
const jsonSchemas = ["JSON", ...["Array", "Bool", "StringArray"].map((name) => `JSONSchemaPropsOr${name}`)];
const extensions = jsonSchemas.map((name) => `apiextensions/v1.${name}`);
const others = [...noSchemas, ...extensions, "resource.Quantity", "intstr.IntOrString", "runtime.RawExtension"];

const files: Readonly<Record<string, Texts>> = {
  "access.ts": accessTexts,
  "coordination.ts": coordinationTexts,
  "core.ts": coreTexts,
  "extensions.ts": extensionTexts,
  "legacy-volumes.ts": legacyVolumeTexts,
  "meta.ts": metaTexts,
  "metrics.ts": metricsTexts,
  "networking.ts": networkingTexts,
  "pod-status.ts": podStatusTexts,
  "pods.ts": podTexts,
  "resource.ts": resourceTexts,
  "scheduling.ts": schedulingTexts,
  "volumes.ts": volumeTexts,
  "workloads.ts": workloadTexts,
};
const allTexts = Object.entries(files);

t.test("loadDescriptions() loads every file of descriptions", async (t) => {
  const others = ["descriptions.test.ts", "descriptions.ts", "texts.ts"];
  const found = readdirSync(new URL("./", import.meta.url)).filter((file) => !others.includes(file));
  t.same(found.sort(), Object.keys(files).sort());
  const describe = await loadDescriptions();
  for (const [file, texts] of allTexts) {
    for (const [name, members] of Object.entries(texts)) t.match(describe(name), members, `${file}: ${name}`);
  }
  t.equal(describe("apps/v1.DeploymentCondition")?.status, "True, False or Unknown.");
  t.equal(describe("none/v1.Such")?.spec, "The desired state.");
});

t.test("descriptions are short sentences about existing types and fields", async (t) => {
  const schemas = await everySchema();
  const named = new Set<string>();
  for (const [file, texts] of allTexts) {
    for (const [name, members] of Object.entries(texts)) {
      t.notOk(named.has(name), `${name} is described once`);
      named.add(name);
      const schema = schemas.get(name);
      if (schema === undefined) {
        t.ok(others.includes(name), `${file}: there is a type ${name}`);
        continue;
      }
      const known = new Set(["", ...membersOf(schema).map((member) => member.name)]);
      for (const [member, text] of Object.entries(members)) {
        if (!known.has(member)) t.fail(`${file}: ${name} has a member ${member}`);
        if (!/^.{3,160}[.:…]$/.test(text)) t.fail(`${file}: ${name} ${member}: a short sentence`);
      }
    }
  }
});

t.test("loadDescriptions() describes every kind and every field of its spec", async (t) => {
  const describe = await loadDescriptions();
  for (const { kind, schema } of builtinScheme().kinds()) {
    t.ok(describe(schema.name)?.[""], kind);
    const spec = schema.fields.spec?.schema;
    if (spec === undefined || typeof spec === "function" || spec.type !== "object") continue;
    for (const [name, field] of Object.entries(spec.fields)) {
      if (field.inline !== true) t.ok(describe(spec.name)?.[name], `${spec.name} ${name}`);
    }
  }
});
