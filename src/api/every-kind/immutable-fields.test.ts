/** Each field of the kinds with immutable fields, changed alone: updates refuse it, or do not, as in Kubernetes. */
import t from "tap";
import { decode } from "../../schema/decode/decode.ts";
import { memberOf, membersOf } from "../../schema/members.ts";
import type { ObjectSchema, Schema } from "../../schema/schema.ts";
import { builtinKinds } from "../builtin.ts";
import type { ApiObject, Kind } from "../kind.ts";

interface Rules {
  readonly kind: string;
  /** The object before the change, without its name. */
  readonly object: object;
  /** The fields are those of the spec unless it is the object. */
  readonly of?: "object";
  /** All other fields are refused. */
  readonly mutable?: readonly string[];
  /** All other fields are accepted. */
  readonly immutable?: readonly string[];
}

const spec = { containers: [{ name: "c", image: "i" }] };
const template = { metadata: { labels: { a: "b" } }, spec };
const selector = { matchLabels: { a: "b" } };
const storage = { requests: { storage: "1Gi" } };
const reference = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "r" };

const RULES: readonly Rules[] = [
  {
    kind: "StatefulSet",
    object: { spec: { selector, template, serviceName: "s" } },
    mutable: [
      ...["replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "minReadySeconds"],
      "persistentVolumeClaimRetentionPolicy",
    ],
  },
  {
    kind: "PersistentVolumeClaim",
    object: { spec: { accessModes: ["ReadWriteOnce"], resources: storage, storageClassName: "a", volumeName: "v" } },
    mutable: ["volumeAttributesClassName"],
  },
  {
    kind: "PersistentVolume",
    object: { spec: { nfs: { server: "s", path: "/" }, nodeAffinity: { required: { nodeSelectorTerms: [] } } } },
    mutable: [
      ...["accessModes", "capacity", "claimRef", "mountOptions", "persistentVolumeReclaimPolicy", "storageClassName"],
      "volumeAttributesClassName",
    ],
  },
  {
    kind: "Job",
    object: { spec: { selector, template, completionMode: "NonIndexed" } },
    immutable: [
      ...["completions", "selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"],
      ...["managedBy", "successPolicy"],
    ],
  },
  { kind: "Deployment", object: { spec: { selector, template } }, immutable: ["selector"] },
  { kind: "DaemonSet", object: { spec: { selector, template } }, immutable: ["selector"] },
  { kind: "ReplicaSet", object: { spec: { selector, template } }, immutable: ["selector"] },
  {
    kind: "StorageClass",
    object: { provisioner: "p", reclaimPolicy: "Delete", volumeBindingMode: "Immediate" },
    of: "object",
    immutable: ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"],
  },
  {
    kind: "PriorityClass",
    object: { value: 1, preemptionPolicy: "PreemptLowerPriority" },
    of: "object",
    immutable: ["value", "preemptionPolicy"],
  },
  { kind: "RuntimeClass", object: { handler: "h" }, of: "object", immutable: ["handler"] },
  { kind: "RoleBinding", object: { roleRef: reference }, of: "object", immutable: ["roleRef"] },
  { kind: "ClusterRoleBinding", object: { roleRef: reference }, of: "object", immutable: ["roleRef"] },
  { kind: "ControllerRevision", object: { data: { a: 1 }, revision: 1 }, of: "object", immutable: ["data"] },
  {
    kind: "ConfigMap",
    object: { immutable: true, data: { a: "1" }, binaryData: { b: "AA==" } },
    of: "object",
    immutable: ["data", "binaryData", "immutable"],
  },
  {
    kind: "Secret",
    object: { immutable: true, type: "Opaque", data: { b: "AA==" } },
    of: "object",
    immutable: ["data", "immutable", "type"],
  },
  { kind: "IngressClass", object: { spec: { controller: "a/b" } }, immutable: ["controller"] },
  { kind: "EndpointSlice", object: { addressType: "IPv4" }, of: "object", immutable: ["addressType"] },
  {
    kind: "VolumeAttachment",
    object: { spec: { attacher: "a", nodeName: "n", source: { persistentVolumeName: "v" } } },
    mutable: [],
  },
  { kind: "IPAddress", object: { spec: { parentRef: { resource: "r", name: "n" } } }, mutable: [] },
  {
    kind: "ResourceQuota",
    object: { spec: { hard: { pods: "1" }, scopes: ["BestEffort"] } },
    immutable: ["scopes"],
  },
  {
    kind: "CSIDriver",
    object: { spec: { attachRequired: true, volumeLifecycleModes: ["Persistent"] } },
    immutable: ["attachRequired", "volumeLifecycleModes"],
  },
];

/** A value of the schema that differs from those above. */
function otherValue(schema: Schema, depth = 0): unknown {
  switch (schema.type) {
    case "string":
    case "enum":
      return "other";
    case "integer":
    case "number":
      return 77;
    case "boolean":
      return false;
    case "bytes":
      return "BBBB";
    case "list":
      return [otherValue(schema.items, depth + 1)];
    case "map":
      return { other: otherValue(schema.values, depth + 1) };
    case "object": {
      const members = depth > 3 ? [] : membersOf(schema);
      return Object.fromEntries(members.map((member) => [member.name, otherValue(member.schema, depth + 1)]));
    }
    case "special":
      return schema.format === "quantity" ? "77" : schema.format === "intOrString" ? 77 : "2026-01-01T00:00:00Z";
    default:
      return { other: 77 };
  }
}

/** Errors of the update that say that the field must not change. */
function refusals(kind: Kind, next: object, previous: object): readonly string[] {
  const decoded = [next, previous].map((object) => decode(kind.schema, object).value as ApiObject);
  const errors = kind.strategy.validateUpdate?.(decoded[0]!, decoded[1]!, { has: () => true }) ?? [];
  return errors
    .map(({ field, detail }) => `${field}: ${detail}`)
    .filter((text) => /immutable|may not|updates to|cannot change|forbidden|may only|can only/.test(text));
}

t.test("updates refuse the changes of immutable fields, and no others", async (t) => {
  for (const { kind: name, object, of, mutable, immutable = [] } of RULES) {
    const kind = builtinKinds.find(({ kind, version }) => kind === name && version === "v1")!;
    const metadata = { name: "n", namespace: "d", resourceVersion: "1" };
    const previous = { metadata, ...object };
    const schema = of === "object" ? kind.schema : (memberOf(kind.schema, "spec")!.schema as ObjectSchema);
    const wrong: string[] = [];
    for (const { name: field, schema: type } of membersOf(schema)) {
      if (["metadata", "apiVersion", "kind", "status", "stringData"].includes(field)) continue;
      const value = otherValue(type);
      const { spec = {} } = previous as { readonly spec?: object };
      const next =
        of === "object" ? { ...previous, [field]: value } : { ...previous, spec: { ...spec, [field]: value } };
      const isImmutable = mutable === undefined ? immutable.includes(field) : !mutable.includes(field);
      const found = refusals(kind, next, previous);
      if (found.length > 0 !== isImmutable) wrong.push(`${field}: ${found.join("; ") || "accepted"}`);
    }
    t.same(wrong, [], name);
  }
});
