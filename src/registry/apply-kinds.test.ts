/** Every kind with every member filled (`shared/oracles/api-roundtrip`) can be applied, and is then as applied. */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";
import type { ApiObject } from "../api/kind.ts";
import { kubernetesGroup } from "../api/scheme.ts";
import { deepFreeze } from "../schema/value/freeze.ts";
import { fixture } from "../testing/registry/registry-fixture.ts";
import { mergeConfiguration } from "./apply.ts";
import { updateManagedFields } from "./managed-fields/track-managed-fields.ts";

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../shared", import.meta.url));
const folder = `${shared}/oracles/api-roundtrip/HEAD/`;

/** As a client would apply it: without what is the system's. */
function configurationOf(path: string): Readonly<Record<string, unknown>> & ApiObject {
  const { metadata, ...object } = JSON.parse(readFileSync(path, "utf8"));
  const { name, namespace, labels, annotations, finalizers, ownerReferences } = metadata;
  return { ...object, metadata: { name, namespace, labels, annotations, finalizers, ownerReferences } };
}

t.test("applied() takes every kind, twice without a change, and its fields are the applier's", async (t) => {
  if (!existsSync(folder)) {
    t.comment("shared/ is not present: kinds left out");
    return;
  }
  await using f = fixture();
  const options = { fieldManager: "me", force: false };
  for (const kind of f.registries.scheme.kinds()) {
    const group = kubernetesGroup(kind.group);
    const path = `${folder}${group || "core"}.${kind.version}.${kind.kind}.json`;
    if (!existsSync(path)) continue;
    const configuration = configurationOf(path);
    const registry = f.registries.of(kind);
    const { name = "", namespace = "" } = configuration.metadata ?? {};
    const scope = { ...f.scope(kind.namespaced ? namespace : ""), group };
    const sent = kind.namespaced
      ? configuration
      : { ...configuration, metadata: { ...configuration.metadata, namespace: "" } };
    const made = mergeConfiguration(registry, scope, name, sent, undefined, options);
    const live = deepFreeze({ ...made, metadata: { ...made.metadata, uid: "u" } });
    t.equal(live.metadata?.managedFields?.length, 1, kind.kind);
    const again = mergeConfiguration(registry, scope, name, sent, live, options);
    t.same(again.metadata?.managedFields, live.metadata?.managedFields, `${kind.kind}: nothing changes`);
    const updated = updateManagedFields(registry, scope, structuredClone(live), live, { fieldManager: "other" });
    t.same(updated.metadata?.managedFields, live.metadata?.managedFields, `${kind.kind}: an update changes nothing`);
    const nothing = {
      apiVersion: sent.apiVersion,
      kind: sent.kind,
      metadata: { name, namespace: sent.metadata?.namespace },
    };
    const emptied = mergeConfiguration(registry, scope, name, nothing, live, options);
    t.same(emptied.metadata?.ownerReferences ?? [], [], `${kind.kind}: what is applied no longer goes`);
    t.equal(emptied.metadata?.managedFields, undefined);
  }
});
