import t from "tap";
import { type FieldError, renderFieldError } from "../../schema/validation/field-error.ts";
import { deviceClassKind } from "./device-class/kind.ts";
import { deviceTaintRuleKind } from "./device-taint-rule/kind.ts";
import { alphaResourceSliceKind, betaResourceSliceKind, flatResourceClaimKinds } from "./flat-versions/kinds.ts";
import { resourceClaimKind } from "./resource-claim/kind.ts";
import { resourceClaimTemplateKind } from "./resource-claim-template/kind.ts";
import { resourceSliceKind } from "./resource-slice/kind.ts";
import type { Device, DeviceRequest, ResourceClaim, ResourceClaimStatus, ResourceSlice } from "./schemas.ts";

const shown = (errors: readonly FieldError[] = []) => errors.map(({ field, detail }) => `${field}: ${detail}`);
const NOW = "2025-01-02T03:04:05Z";

const claim = (...requests: readonly DeviceRequest[]): ResourceClaim => ({
  metadata: { name: "c", namespace: "default" },
  spec: { devices: { requests } },
});
const request: DeviceRequest = {
  name: "gpu",
  exactly: { deviceClassName: "gpu.example.com", allocationMode: "ExactCount", count: 1 },
};
const exactly = (change: Partial<NonNullable<DeviceRequest["exactly"]>>): ResourceClaim =>
  claim({ ...request, exactly: { ...request.exactly!, ...change } });
const claimErrors = (object: ResourceClaim) => shown(resourceClaimKind.strategy.validate?.(object));

t.test("requests get a mode and a count", async (t) => {
  const sent = claim(
    { name: "a", exactly: { deviceClassName: "x" } },
    {
      name: "b",
      firstAvailable: [{ name: "s", deviceClassName: "x", allocationMode: "All" }],
    },
  );
  const { requests } = resourceClaimKind.strategy.setDefaults!(sent).spec.devices!;
  t.match(requests?.[0]?.exactly, { allocationMode: "ExactCount", count: 1 });
  t.strictSame(requests?.[1]?.firstAvailable, [{ name: "s", deviceClassName: "x", allocationMode: "All" }]);
});

t.test("claims have one form of request, existing requests in constraints, and valid selectors", async (t) => {
  t.same(claimErrors(claim(request)), []);
  t.match(claimErrors(claim({ name: "gpu" })), [/exactly one of `exactly` or `firstAvailable` is required$/]);
  t.match(claimErrors(claim(request, request)), [/^spec.devices.requests\[1\].name: $/]);
  t.match(claimErrors(exactly({ count: 0 })), [/exactly.count: must be greater than zero/]);
  t.match(claimErrors(exactly({ allocationMode: "All" })), [/must not be specified when allocationMode is 'All'/]);
  t.match(claimErrors(exactly({ allocationMode: "Some" })), [/supported values: "All", "ExactCount"/]);
  t.match(claimErrors(exactly({ deviceClassName: "" })), [/^spec.devices.requests\[0\].exactly.deviceClassName: $/]);
  t.match(claimErrors(exactly({ tolerations: [{ operator: "Exists", value: "x" }] })), [/must be empty for operator/]);
  const withConstraint = (name: string, matchAttribute = "gpu.example.com/numa"): ResourceClaim => ({
    ...claim(request),
    spec: { devices: { requests: [request], constraints: [{ requests: [name], matchAttribute }] } },
  });
  t.same(claimErrors(withConstraint("gpu")), []);
  t.match(claimErrors(withConstraint("none")), [/must be the name of a request in the claim/]);
  t.match(claimErrors(withConstraint("gpu", "numa")), [/must include a domain/]);
});

t.test("selectors are boolean expressions about a device", async (t) => {
  const selecting = (expression: string) => claimErrors(exactly({ selectors: [{ cel: { expression } }] }));
  t.same(selecting('device.driver == "gpu.example.com"'), []);
  t.same(selecting('device.attributes["gpu.example.com"].model == "x"'), []);
  t.same(selecting('device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("1Gi"))'), []);
  t.same(selecting('device.attributes["x.example"].v.isGreaterThan(semver("1.2.3"))'), []);
  t.match(selecting("device.none"), [/compilation failed: /]);
  t.match(selecting("1"), [/must evaluate to bool or the unknown type, not int/]);
  t.match(claimErrors(exactly({ selectors: [{}] })), [/selectors\[0\].cel: $/]);
});

t.test("a claim's spec is immutable, and its status starts empty", async (t) => {
  const { strategy } = resourceClaimKind;
  t.match(shown(strategy.validateUpdate?.(exactly({ count: 2 }), claim(request))), [/^spec: field is immutable$/]);
  t.equal(strategy.prepareForCreate?.({ ...claim(request), status: {} }, NOW).status, undefined);
});

const result = { request: "gpu", driver: "gpu.example.com", pool: "n1", device: "gpu-0" };
const allocation = { devices: { results: [result] } };
const device = { driver: "gpu.example.com", pool: "n1", device: "gpu-0" };
const consumer = { resource: "pods", name: "p", uid: "u" };
const withStatus = (status: ResourceClaimStatus): ResourceClaim => ({ ...claim(request), status });

t.test("allocations name requests, and reservations and device status need them", async (t) => {
  const { strategy } = resourceClaimKind.subresources[0]!;
  const errors = (next: ResourceClaimStatus, before: ResourceClaimStatus = {}, metadata: object = {}) =>
    shown(
      strategy?.validateUpdate?.(
        { ...withStatus(next), metadata: { ...claim().metadata, ...metadata } },
        withStatus(before),
      ),
    );
  t.same(errors({ allocation, reservedFor: [consumer], devices: [device] }), []);
  t.match(errors({ allocation: { devices: { results: [{ ...result, request: "x" }] } } }), [
    /must be the name of a req/,
  ]);
  t.match(errors({ reservedFor: [consumer] }), [/may not be specified when `allocated` is not set/]);
  t.match(errors({ allocation, devices: [{ ...device, device: "gpu-1" }] }), [
    /must be an allocated device in the claim/,
  ]);
  t.match(errors({ allocation, reservedFor: [consumer, consumer] }), [/^status.reservedFor\[1\].uid: $/]);
  const other = { devices: { results: [{ ...result, device: "gpu-1" }] } };
  t.match(errors({ allocation: other }, { allocation }), [/^status.allocation: field is immutable$/]);
  const deleted = { deletionTimestamp: NOW };
  t.match(errors({ allocation, reservedFor: [consumer] }, { allocation }, deleted), [/new entries may not be added/]);
  const networkData = { ips: ["10.0.0.1/24", "10.0.0.1"], interfaceName: "x".repeat(257) };
  t.match(errors({ allocation, devices: [{ ...device, networkData }] }), [
    /interfaceName/,
    /valid address in CIDR form/,
  ]);
});

t.test("errors show the identity of a device without quotes", async (t) => {
  const { strategy } = resourceClaimKind.subresources[0]!;
  const errors = (next: ResourceClaimStatus) =>
    (strategy?.validateUpdate?.(withStatus(next), withStatus({})) ?? []).map(renderFieldError);
  t.match(errors({ allocation, devices: [{ ...device, device: "gpu-1" }] }), [
    /^Invalid value: gpu.example.com\/n1\/gpu-1: must be an allocated device in the claim$/,
  ]);
  t.match(errors({ allocation, devices: [device, device] }), [/^Duplicate value: gpu.example.com\/n1\/gpu-0$/]);
});

t.test("a claim that is being deleted keeps its reservations, in any order of their fields", async (t) => {
  const { strategy } = resourceClaimKind.subresources[0]!;
  const leaving = (entry: typeof consumer) => ({
    ...withStatus({ allocation, reservedFor: [entry] }),
    metadata: { name: "c", namespace: "default", deletionTimestamp: NOW },
  });
  const { resource, name, uid } = consumer;
  const reordered = { uid, name, resource };
  t.same(strategy?.validateUpdate?.(leaving(reordered), leaving(consumer)), []);
  t.match(shown(strategy?.validateUpdate?.(leaving({ ...consumer, name: "q" }), leaving(consumer))), [
    /new entries may not be added/,
  ]);
});

t.test("a name of an attribute that is no C identifier is of an invalid type", async (t) => {
  const found = resourceClaimKind.strategy.validate?.({
    ...claim(request),
    spec: { devices: { requests: [request], constraints: [{ matchAttribute: "gpu.example.com/a-b" }] } },
  });
  t.match(found, [{ type: "FieldValueTypeInvalid", field: "spec.devices.constraints[0].matchAttribute" }]);
});

t.test("limits of text count bytes, as in Kubernetes", async (t) => {
  const { strategy } = resourceClaimKind.subresources[0]!;
  const errors = (networkData: object) =>
    shown(
      strategy?.validateUpdate?.(withStatus({ allocation, devices: [{ ...device, networkData }] }), withStatus({})),
    );
  t.same(errors({ interfaceName: "é".repeat(128), hardwareAddress: "é".repeat(64) }), []);
  t.match(errors({ interfaceName: "é".repeat(129), hardwareAddress: "é".repeat(65) }), [
    /networkData.interfaceName/,
    /networkData.hardwareAddress/,
  ]);
});

t.test("the status of devices ends with their allocation", async (t) => {
  const { strategy } = resourceClaimKind.subresources[0]!;
  const next = strategy?.prepareForUpdate(withStatus({ devices: [device] }), withStatus({ allocation }), NOW);
  t.strictSame(next?.status, {});
});

t.test("the table shows the state of a claim", async (t) => {
  const state = (object: ResourceClaim) => resourceClaimKind.columns[1]?.cell(object, 0);
  t.equal(state(claim()), "pending");
  t.equal(state(withStatus({ allocation })), "allocated");
  t.equal(state(withStatus({ allocation, reservedFor: [consumer] })), "allocated,reserved");
  t.equal(state({ ...claim(), metadata: { deletionTimestamp: NOW } }), "deleted");
});

t.test("templates set only labels and annotations of their claims", async (t) => {
  const { strategy } = resourceClaimTemplateKind;
  const template = (metadata: object) => ({ spec: { metadata, spec: claim({ name: "x" }).spec } });
  t.match(shown(strategy.validate?.(template({ labels: { a: "b" }, name: "n" }))), [
    /^spec.metadata.name: cannot be set$/,
    /^spec.spec.devices.requests\[0\]: exactly one of/,
  ]);
});

t.test("classes have selectors and configuration of drivers", async (t) => {
  const { strategy } = deviceClassKind;
  const broken = {
    spec: { selectors: [{ cel: { expression: "1" } }], config: [{ opaque: { driver: "", parameters: {} } }] },
  };
  t.match(shown(strategy.validate?.(broken)), [/must evaluate to bool/, /^spec.config\[0\].opaque.driver: /]);
  t.notMatch(shown(strategy.validate?.(broken, broken)), [/must evaluate to bool/], "stored selectors are kept");
  const created = strategy.prepareForCreate?.({ spec: {} }, NOW);
  t.equal(created?.metadata?.generation, 1);
});

const slice = (change: Partial<ResourceSlice["spec"]>): ResourceSlice => ({
  spec: {
    driver: "gpu.example.com",
    pool: { name: "n1", generation: 0, resourceSliceCount: 1 },
    nodeName: "n1",
    devices: [{ name: "gpu-0" }],
    ...change,
  },
});
const { nodeName: _, ...withoutNode } = slice({}).spec;
const sliceErrors = (spec: Partial<ResourceSlice["spec"]>) => shown(resourceSliceKind.strategy.validate?.(slice(spec)));

t.test("slices belong to a pool and to nodes", async (t) => {
  t.same(sliceErrors({}), []);
  t.match(sliceErrors({ pool: { name: "a/B", generation: -1, resourceSliceCount: 0 } }), [
    /pool.name: a lowercase RFC 1123 subdomain/,
    /must be greater than zero/,
    /must be greater than or equal to zero/,
  ]);
  t.match(sliceErrors({ allNodes: true }), [/is required, but multiple fields are set/]);
  t.match(shown(resourceSliceKind.strategy.validate?.({ spec: withoutNode })), [/^spec: exactly one of `nodeName`/]);
  t.match(shown(resourceSliceKind.strategy.validate?.(slice({ nodeName: "n2" }), slice({}))), [
    /^spec.nodeName: field is/,
  ]);
});

t.test("devices have attributes, capacities, counters and taints", async (t) => {
  const deviceErrors = (change: Partial<Device>, spec: Partial<ResourceSlice["spec"]> = {}) =>
    sliceErrors({ devices: [{ name: "gpu-0", ...change }], ...spec });
  t.same(deviceErrors({ attributes: { model: { string: "x" }, "a.example/v": { version: "1.2.3" } } }), []);
  t.match(deviceErrors({ attributes: { m: {} } }), [/attributes\[m\]: exactly one value must be specified/]);
  t.match(deviceErrors({ attributes: { m: { version: "1" } } }), [/semver.org/]);
  t.match(deviceErrors({ attributes: { "1": { int: 1 } } }), [/a valid C identifier/]);
  t.match(deviceErrors({ capacity: { "/x": { value: "1" } } }), [/the domain must not be empty/]);
  t.match(deviceErrors({ taints: [{ key: "", effect: "NoSchedule" }] }), [/taints\[0\].key/, /taints\[0\].key/]);
  const counters = { memory: { value: "1Gi" } };
  const sharedCounters = [{ name: "set", counters }];
  t.same(deviceErrors({ consumesCounters: [{ counterSet: "set", counters }] }, { sharedCounters }), []);
  t.match(deviceErrors({ consumesCounters: [{ counterSet: "set", counters }] }), [
    /must reference a counterSet defined/,
  ]);
  t.match(deviceErrors({ nodeName: "n" }), [/can only be set if `perDeviceNodeSelection` is set to true/]);
  t.match(sliceErrors({ devices: Array.from({ length: 129 }, (_, i) => ({ name: `d${i}` })) }), [/at most 128 items/]);
});

t.test("taints get the time at which they were added", async (t) => {
  const taint = { key: "a.example/bad", effect: "NoExecute" } as const;
  const created = resourceSliceKind.strategy.prepareForCreate?.(
    slice({ devices: [{ name: "d", taints: [taint] }] }),
    NOW,
  );
  t.equal(created?.spec.devices?.[0]?.taints?.[0]?.timeAdded, NOW);
  const rule = deviceTaintRuleKind.strategy.prepareForCreate?.({ spec: { taint } }, NOW);
  t.equal(rule?.spec.taint?.timeAdded, NOW);
  t.match(shown(deviceTaintRuleKind.strategy.validate?.({ spec: { deviceSelector: { pool: "B" } } })), [/pool/, /key/]);
});

t.test("the flat versions have the fields of the stored one", async (t) => {
  const [beta] = flatResourceClaimKinds;
  const flat = { spec: { devices: { requests: [{ name: "gpu", deviceClassName: "x" }] } } };
  const stored = { spec: { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: "x" } }] } } };
  t.strictSame(beta?.conversion?.toStorage(flat), stored);
  t.strictSame(beta?.conversion?.fromStorage(stored as ResourceClaim), flat);
  t.match(shown(beta?.strategy.validate?.({ spec: { devices: { requests: [{ name: "gpu" }] } } })), [/exactly one of/]);
  t.match(beta?.strategy.setDefaults?.(flat), {
    spec: { devices: { requests: [{ allocationMode: "ExactCount", count: 1 }] } },
  });
  const devices = [{ name: "d", attributes: { a: { int: 1 } }, capacity: { memory: { value: "1Gi" } } }];
  const { nodeName, ...rest } = slice({ devices }).spec;
  const spec = { ...rest, nodeName: nodeName ?? "" };
  const { name, ...basic } = devices[0]!;
  t.strictSame(betaResourceSliceKind.conversion?.fromStorage({ spec } as ResourceSlice), {
    spec: { ...spec, devices: [{ name, basic }] },
  });
  const alpha = alphaResourceSliceKind.conversion?.fromStorage({ spec } as ResourceSlice);
  t.same(alpha?.spec.devices?.[0]?.basic?.capacity, { memory: "1Gi" });
  t.same(alphaResourceSliceKind.conversion?.toStorage(alpha!), { spec });
});

t.test("an update of a claim or a template also reports the new spec, except its expressions", async (t) => {
  const next = exactly({ count: -1, selectors: [{ cel: { expression: "1" } }] });
  const immutable = /^spec: field is immutable$/;
  t.match(shown(resourceClaimKind.strategy.validateUpdate?.(next, claim(request))), [
    immutable,
    /^spec.devices.requests\[0\].exactly.count: must be greater than zero$/,
  ]);
  t.equal(resourceClaimKind.strategy.validateUpdate?.(next, claim(request)).length, 2);
  const template = ({ spec }: ResourceClaim) => ({ spec: { spec } });
  t.match(shown(resourceClaimTemplateKind.strategy.validateUpdate?.(template(next), template(claim(request)))), [
    immutable,
    /^spec.spec.devices.requests\[0\].exactly.count: must be greater than zero$/,
  ]);
  t.same(resourceClaimKind.strategy.validateUpdate?.(claim(request), claim(request)), []);
});

t.test("the values of attributes have 64 bytes at most", async (t) => {
  const types = (attribute: object) =>
    (
      resourceSliceKind.strategy.validate?.(slice({ devices: [{ name: "gpu-0", attributes: { m: attribute } }] })) ?? []
    ).map(({ type }) => type);
  t.same(types({ string: "é".repeat(32) }), []);
  t.same(types({ string: "é".repeat(33) }), ["FieldValueTooLong"]);
  t.same(types({ version: `1.2.3-${"a".repeat(58)}` }), []);
  t.same(types({ version: `1.2.3-${"a".repeat(59)}` }), ["FieldValueTooLong"]);
});
