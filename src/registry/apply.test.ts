import t from "tap";
import { horizontalPodAutoscalerKind } from "../api/autoscaling/horizontal-pod-autoscaler/kind.ts";
import { horizontalPodAutoscalerV1Kind } from "../api/autoscaling/horizontal-pod-autoscaler-v1/kind.ts";
import { configMapKind } from "../api/core/config-map/kind.ts";
import type { ConfigMap } from "../api/core/config-map/schema.ts";
import { podKind } from "../api/core/pod/kind.ts";
import { type Fixture, fixture, rejectionStatus } from "../testing/registry/registry-fixture.ts";
import { apply } from "./apply.ts";
import { create } from "./create.ts";
import { get } from "./get.ts";
import type { ApplyOptions } from "./managed-fields/apply-configuration.ts";
import { update } from "./update.ts";

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

function maps(f: Fixture) {
  const registry = f.registries.of(configMapKind);
  const scope = f.scope();
  const configured = (data: object, metadata: object = {}) => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "a", ...metadata },
    data,
  });
  const by = async (
    fieldManager: string,
    data: object,
    options: Partial<ApplyOptions<ConfigMap>> = {},
    metadata?: object,
  ) => await apply(registry, scope, "a", configured(data, metadata), { force: false, fieldManager, ...options });
  return { registry, scope, configured, by };
}

t.test("apply() creates an object that does not exist, with created true", async (t) => {
  await using f = fixture();
  const { by } = maps(f);
  const { object, created } = await by("one", { k: "1" }, {}, { resourceVersion: "1" });
  t.ok(created);
  t.ok(object.metadata?.uid);
  t.not(object.metadata?.resourceVersion, "1");
  t.same(object.metadata?.managedFields?.[0]?.fieldsV1, { "f:data": { "f:k": {} } });
  await f.clock.advance(5000);
  const again = await by("one", { k: "1" });
  t.notOk(again.created);
  t.same(again.object.metadata, object.metadata, "a second apply changes nothing");
});

t.test("apply() fails with a cause for each field of another manager, unless it is forced", async (t) => {
  await using f = fixture();
  const { registry, scope, by } = maps(f);
  await by("one", { k: "1", l: "1" });
  const changed = { metadata: { name: "a" }, data: { k: "1", l: "1", m: "1" } };
  await update(registry, scope, "a", changed, { fieldManager: "updater" });
  const status = await rejectionStatus(by("two", { k: "2", m: "2" }));
  t.match(status, {
    code: 409,
    reason: "Conflict",
    message: `Apply failed with 2 conflicts: conflicts with "one":\n- .data.k\nconflicts with "updater" using v1:\n- .data.m`,
  });
  t.same(status.details?.causes, [
    { reason: "FieldManagerConflict", message: 'conflict with "one"', field: ".data.k" },
    { reason: "FieldManagerConflict", message: 'conflict with "updater" using v1', field: ".data.m" },
  ]);
  const { object } = await by("two", { k: "2", m: "2" }, { force: true, dryRun: true });
  t.same(object.data, { k: "2", l: "1", m: "2" });
  t.same((await get(registry, scope, "a")).object.data, changed.data, "a dry run writes nothing");
  await by("two", { k: "2", m: "2" }, { force: true });
  const one = await by("one", {});
  t.same(one.object.data, { k: "2", m: "2" }, "fields that only this manager applied are removed");
});

const refused = [
  [{ kind: "Secret" }, 400, "invalid object type: /v1, Kind=Secret"],
  [{ kind: undefined }, 400, "invalid object type: /v1, Kind="],
  [{ apiVersion: undefined }, 400, "invalid object type: /, Kind=ConfigMap"],
  [{ apiVersion: "v2" }, 400, "invalid object type: /v2, Kind=ConfigMap"],
  [{ metadata: { name: "b" } }, 400, "the name of the object (b) does not match the name on the URL (a)"],
  [{ metadata: {} }, 400, "the name of the object (a based on URL) was undeterminable: name must be provided"],
  [{ metadata: { name: "a", namespace: "x" } }, 400, /namespace of the provided object does not match/],
  [{ metadata: { name: "a", managedFields: [] } }, 400, "metadata.managedFields must be nil"],
  [{ metadata: { name: "a", uid: "x" } }, 409, /uid mismatch: the provided object specified uid x/],
  [
    { data: { k: 5 } },
    500,
    /failed to create typed patch object \(\/a; \/v1, Kind=ConfigMap\): \.data\.k: expected string/,
  ],
  [{ nothing: 1 }, 500, /\.nothing: field not declared in schema/],
  [{ metadata: { name: "a", finalizers: ["x.y/z", "x.y/z"] } }, 500, /duplicate entries for key \[="x\.y\/z"\]/],
] as const;

for (const [wrong, code, message] of refused) {
  t.test(`apply() rejects a configuration with ${JSON.stringify(wrong)}`, async (t) => {
    await using f = fixture();
    const { registry, scope, configured } = maps(f);
    const options = { force: false, fieldManager: "m" };
    const status = await rejectionStatus(apply(registry, scope, "a", { ...configured({}), ...wrong }, options));
    t.match(status, { code, message });
  });
}

t.test("apply() fails when the resourceVersion or uid of the configuration differs", async (t) => {
  await using f = fixture();
  const { by } = maps(f);
  const { object } = await by("m", { k: "1" });
  await by("m", { k: "2" }, {}, { resourceVersion: object.metadata?.resourceVersion });
  const stale = await rejectionStatus(by("m", { k: "3" }, {}, { resourceVersion: object.metadata?.resourceVersion }));
  t.match(stale, { code: 409, message: /the object has been modified/ });
});

t.test("apply() assigns existing fields to before-first-apply when the object has no managedFields", async (t) => {
  await using f = fixture();
  const { registry, scope, by } = maps(f);
  await create(registry, scope, { metadata: { name: "a" }, data: { k: "1" } });
  const status = await rejectionStatus(by("m", { k: "2" }));
  t.match(status.message, /conflict with "before-first-apply" using v1: \.data\.k/);
  const { object } = await by("m", { k: "2" }, { force: true });
  t.same(
    object.metadata?.managedFields?.map(({ manager }) => manager),
    ["m", "before-first-apply"],
  );
});

t.test("apply() to a subresource manages only its fields, and creates no object", async (t) => {
  await using f = fixture();
  const pods = f.registries.of(podKind);
  const subresourceStrategy = podKind.subresources.find(({ name }) => name === "status")?.strategy;
  const options = { force: false, fieldManager: "agent", subresource: "status", subresourceStrategy };
  const spec = { containers: [{ name: "c", image: "i" }] };
  const configuration = { apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec, status: { phase: "Running" } };
  t.equal((await rejectionStatus(apply(pods, f.scope(), "p", configuration, options))).code, 404);
  await create(pods, f.scope(), { metadata: { name: "p" }, spec }, { fieldManager: "maker" });
  const { object } = await apply(pods, f.scope(), "p", configuration, options);
  const entry = object.metadata?.managedFields?.find(({ manager }) => manager === "agent");
  t.same(entry?.fieldsV1, { "f:status": { "f:phase": {} } });
  t.equal(entry?.subresource, "status");
  t.equal(object.status?.phase, "Running");
});

t.test("apply() by kubectl takes over the fields of client-side apply", async (t) => {
  await using f = fixture();
  const { registry, scope, configured, by } = maps(f);
  const last = `${JSON.stringify(configured({ k: "1", l: "1" }))}\n`;
  const made = { metadata: { name: "a", annotations: { [LAST_APPLIED]: last } }, data: { k: "1", l: "1" } };
  await create(registry, scope, made, { fieldManager: "kubectl-client-side-apply" });
  await update(registry, scope, "a", { ...made, data: { k: "1", l: "9" } }, { fieldManager: "other" });
  t.match(await rejectionStatus(by("other-manager", { k: "2" })), { code: 409 });
  t.match(await rejectionStatus(by("kubectl", { k: "2", l: "2" })), {
    code: 409,
    message: /^Apply failed with 1 conflict: conflict with "other" using v1: \.data\.l$/,
  });
  const { object } = await by("kubectl", { k: "2" });
  t.same(object.data, { k: "2", l: "9" });
  t.same(JSON.parse(object.metadata?.annotations?.[LAST_APPLIED] ?? ""), configured({ k: "2" }));
});

t.test("apply() compares managers of other versions in their version", async (t) => {
  await using f = fixture();
  const [v1, v2] = [f.registries.of(horizontalPodAutoscalerV1Kind), f.registries.of(horizontalPodAutoscalerKind)];
  const scope = { ...f.scope(), group: "autoscaling" };
  const scaleTargetRef = { kind: "Deployment", name: "d", apiVersion: "apps/v1" };
  const configured = (version: string, spec: object) => ({
    apiVersion: `autoscaling/${version}`,
    kind: "HorizontalPodAutoscaler",
    metadata: { name: "h" },
    spec: { scaleTargetRef, ...spec },
  });
  const older = configured("v1", { maxReplicas: 5, targetCPUUtilizationPercentage: 50 });
  await apply(v1, scope, "h", older, { force: false, fieldManager: "one" });
  const newer = configured("v2", { maxReplicas: 6 });
  const status = await rejectionStatus(apply(v2, scope, "h", newer, { force: false, fieldManager: "two" }));
  t.match(status.message, 'Apply failed with 1 conflict: conflict with "one": .spec.maxReplicas');
  const { object } = await apply(v2, scope, "h", newer, { force: true, fieldManager: "two" });
  t.same(
    object.metadata?.managedFields?.map(({ manager, apiVersion }) => `${manager} ${apiVersion}`),
    ["one autoscaling/v1", "two autoscaling/v2"],
  );
  const emptied = await apply(v1, scope, "h", configured("v1", {}), { force: false, fieldManager: "one" });
  t.equal(emptied.object.spec?.maxReplicas, 6, "the other's, whatever the version");
});
