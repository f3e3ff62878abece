import t from "tap";
import type { AdmissionPlugin } from "../../admission/chain/plugin.ts";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import type { Kind } from "../../api/kind.ts";
import { admissionOf } from "../../testing/registry/admission-of.ts";
import { fixture } from "../../testing/registry/registry-fixture.ts";
import { create } from "../create.ts";
import { patch } from "../patch.ts";
import { update } from "../update.ts";

/** A kind, an allocator and a plugin that record the steps of a write. */
function setUp() {
  const steps: string[] = [];
  const record = <R>(step: string, result: R): R => {
    steps.push(step);
    return result;
  };
  const kind: Kind<ConfigMap> = {
    ...configMapKind,
    strategy: {
      setDefaults: (object) => record("applyDefaults", object),
      warningsBeforePrepare: () => record("warningsBeforePrepare", []),
      prepareForCreate: (object) => record("prepareForCreate", object),
      prepareForUpdate: (next) => record("prepareForUpdate", next),
      validate: () => record("validate", []),
      validateUpdate: () => record("validateUpdate", []),
      warnings: () => record("warnings", []),
    },
  };
  const plugin: AdmissionPlugin = {
    name: "recorder",
    handles: () => true,
    mutate: ({ object }) => {
      const { managedFields = [], uid } = object?.metadata ?? {};
      return record(`mutatingAdmission managers=${managedFields.length} uid=${uid !== undefined}`, undefined);
    },
    validate: () => record("validatingAdmission", undefined),
  };
  const allocator = {
    allocate: async (_: unknown, object: ConfigMap) => ({
      object: record(`allocate uid=${object.metadata?.uid !== undefined}`, object),
      commit: async () => record("commit", undefined),
      rollback: async () => record("rollback", undefined),
    }),
    release: async () => record("release", undefined),
  };
  const options = {
    fieldManager: "test",
    admission: admissionOf(kind, "", plugin),
    checkEscalation: async () => record("checkEscalation", undefined),
    authorizeCreate: async () => record("authorizeCreate", undefined),
    warn: () => {},
  };
  const f = fixture();
  const registry = f.registries.of(kind);
  registry.allocator = allocator;
  return { f, registry, options, take: () => steps.splice(0) };
}

t.test("create() runs the steps of the pipeline in order", async (t) => {
  const { f, registry, options, take } = setUp();
  await using _ = f;
  await create(registry, f.scope(), { metadata: { name: "a" }, data: { k: "1" } }, options);
  t.same(take(), [
    "applyDefaults",
    "mutatingAdmission managers=1 uid=false",
    "checkEscalation",
    "allocate uid=true",
    "warningsBeforePrepare",
    "prepareForCreate",
    "validate",
    "warnings",
    "authorizeCreate",
    "validatingAdmission",
    "commit",
  ]);
});

t.test("update() and patch() run the steps in order, and a retry repeats them all", async (t) => {
  const { f, registry, options, take } = setUp();
  await using _ = f;
  await create(registry, f.scope(), { metadata: { name: "a" }, data: { k: "1" } }, options);
  take();
  const attempt = [
    "mutatingAdmission managers=1 uid=false",
    "checkEscalation",
    "allocate uid=true",
    "prepareForUpdate",
    "validate",
    "validateUpdate",
    "warnings",
    "validatingAdmission",
  ];
  await update(registry, f.scope(), "a", { metadata: { name: "a" }, data: { k: "2" } }, options);
  t.same(take(), ["applyDefaults", ...attempt, "commit"]);
  // A write without change is tried again on the stored object; the defaults of a PUT are applied once.
  await update(registry, f.scope(), "a", { metadata: { name: "a" }, data: { k: "2" } }, options);
  const retry = attempt.flatMap((step) => (step.startsWith("allocate") ? ["rollback", step] : [step]));
  t.same(take(), ["applyDefaults", ...attempt, ...retry, "commit"]);
  const decode = (value: unknown): ConfigMap => {
    const { kind: _kind, apiVersion: _apiVersion, ...object } = value as ConfigMap;
    return object;
  };
  await patch(registry, f.scope(), "a", { type: "merge", value: { data: { k: "3" } } }, { ...options, decode });
  t.same(take(), ["applyDefaults", ...attempt.map((step) => step.replace("uid=false", "uid=true")), "commit"]);
});
