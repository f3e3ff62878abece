/** Beta versions with the schema of version 1. `--runtime-config` enables them. */
import { type ListSchema, type MapSchema, type ObjectSchema, type Schema, schemaOf } from "../schema/schema.ts";
import { validatingAdmissionPolicyKind } from "./admissionregistration/validating-admission-policy/kind.ts";
import { validatingAdmissionPolicyBindingKind } from "./admissionregistration/validating-admission-policy-binding/kind.ts";
import type { Kind } from "./kind.ts";
import { ipAddressKind } from "./networking/ip-address/kind.ts";
import { serviceCIDRKind } from "./networking/service-cidr/kind.ts";

interface BetaLifecycle {
  /** The Kubernetes release that introduced the version: `1.31`. */
  readonly since: string;
  readonly deprecation?: string;
}

export const betaKinds: readonly Kind[] = [
  betaVersionOf(ipAddressKind, { since: "1.31" }),
  betaVersionOf(serviceCIDRKind, { since: "1.31" }),
  betaVersionOf(validatingAdmissionPolicyKind, {
    since: "1.28",
    deprecation: removalWarning("ValidatingAdmissionPolicy"),
  }),
  betaVersionOf(validatingAdmissionPolicyBindingKind, {
    since: "1.28",
    deprecation: removalWarning("ValidatingAdmissionPolicyBinding"),
  }),
];

function removalWarning(kind: string): string {
  return `admissionregistration.k8s.io/v1beta1 ${kind} is deprecated in v1.31+, unavailable in v1.34+`;
}

function betaVersionOf(kind: Kind, lifecycle: BetaLifecycle): Kind {
  const version = "v1beta1";
  const [group = ""] = kind.group.split(".");
  const rename = createRenamer((name) => name.replace(`${group}/${kind.version}.`, `${group}/${version}.`));
  return {
    ...kind,
    ...lifecycle,
    version,
    schema: rename(kind.schema) as Kind["schema"],
    conversion: { storageKind: kind, toStorage: (object) => object, fromStorage: (object) => object },
  };
}

/** Returns a function that copies a schema with its nested schemas, and renames each. */
function createRenamer(rename: (name: string) => string): (schema: Schema) => Schema {
  const copies = new Map<Schema, Schema>();
  const visit = (schema: Schema): Schema => {
    const existing = copies.get(schema);
    if (existing !== undefined) return existing;
    const copy = copySchema(schema, visit, rename);
    copies.set(schema, copy);
    return copy;
  };
  return visit;
}

function copySchema(schema: Schema, visit: (schema: Schema) => Schema, rename: (name: string) => string): Schema {
  switch (schema.type) {
    case "object": {
      const fields = Object.entries(schema.fields).map(([name, field]) => {
        return [name, { ...field, schema: visit(schemaOf(field)) }];
      });
      return { ...schema, name: rename(schema.name), fields: Object.fromEntries(fields) } satisfies ObjectSchema;
    }
    case "list":
      return { ...schema, items: visit(schema.items) } satisfies ListSchema;
    case "map":
      return { ...schema, values: visit(schema.values) } satisfies MapSchema;
    default:
      return schema;
  }
}
