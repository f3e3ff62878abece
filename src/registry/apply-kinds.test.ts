/** Applies every kind with every field set (`shared/oracles/api-roundtrip`). */

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";
import type { ApiObject } from "../api/kind.ts";
import { kubernetesGroup } from "../api/scheme.ts";
import { deepFreeze } from "../schema/value/freeze.ts";
import { runSteps } from "../std/async/steps.ts";
import { fixture } from "../testing/registry/registry-fixture.ts";
import { type Configuration, mergeConfiguration } from "./managed-fields/apply-configuration.ts";
import { updateManagedFields } from "./managed-fields/track-managed-fields.ts";
import { applyDefaults } from "./write/apply-defaults.ts";

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../shared", import.meta.url));
const folder = `${shared}/oracles/api-roundtrip/HEAD/`;

/** The object as a client applies it: without system metadata. */
function configurationOf(path: string): Readonly<Record<string, unknown>> & ApiObject {
  const { metadata, ...object } = JSON.parse(readFileSync(path, "utf8"));
  const { name, namespace, labels, annotations, finalizers, ownerReferences } = metadata;
  return { ...object, metadata: { name, namespace, labels, annotations, finalizers, ownerReferences } };
}

t.test(
  "mergeConfiguration() applies every kind; the applier owns all fields, and a second apply changes nothing",
  async (t) => {
    if (!existsSync(folder)) {
      t.comment("shared/ is not present: kinds are skipped");
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
      const request = { registry, scope, name, options };
      const applied = (configuration: Configuration, previous?: ApiObject): ApiObject =>
        applyDefaults(request, runSteps(mergeConfiguration(request, configuration, previous)));
      const made = applied(sent);
      const live = deepFreeze({ ...made, metadata: { ...made.metadata, uid: "u" } });
      t.equal(live.metadata?.managedFields?.length, 1, kind.kind);
      const again = applied(sent, live);
      t.same(again.metadata?.managedFields, live.metadata?.managedFields, `${kind.kind}: nothing changes`);
      const updated = updateManagedFields(
        { ...request, options: { fieldManager: "other" } },
        structuredClone(live),
        live,
      );
      t.same(updated.metadata?.managedFields, live.metadata?.managedFields, `${kind.kind}: an update changes nothing`);
      const nothing = {
        apiVersion: sent.apiVersion,
        kind: sent.kind,
        metadata: { name, namespace: sent.metadata?.namespace },
      };
      const emptied = applied(nothing, live);
      t.same(
        emptied.metadata?.ownerReferences ?? [],
        [],
        `${kind.kind}: fields that are no longer applied are removed`,
      );
      t.equal(emptied.metadata?.managedFields, undefined);
    }
  },
);
