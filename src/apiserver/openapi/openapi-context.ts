/** The descriptions and group-version-kind extensions of components. */
import type { Describe } from "../../api/descriptions/descriptions.ts";
import type { Kind } from "../../api/kind.ts";
import { objectMeta } from "../../api/meta/object-meta.ts";
import type { OpenApiContext } from "../../schema/openapi/openapi.ts";
import type { JsonSchemaProps } from "../../schema/structural/json-schema-props.ts";
import type { GroupVersionKind } from "./operations.ts";

/** Kinds of subresource bodies, which are not resources. */
const subresourceBodies: Readonly<Record<string, GroupVersionKind>> = {
  "autoscaling/v1.Scale": { group: "autoscaling", version: "v1", kind: "Scale" },
  "authentication/v1.TokenRequest": { group: "authentication.svc.io", version: "v1", kind: "TokenRequest" },
  "policy/v1.Eviction": { group: "policy", version: "v1", kind: "Eviction" },
};
type NamedKind = GroupVersionKind & Pick<Kind, "definedGroup">;

/** Kinds of the core group only, in documents of built-in kinds. */
const coreKinds = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];
/** Kinds that every built-in group version has. */
const perGroupVersionKinds = ["DeleteOptions", "WatchEvent"];

/** The schema of a definition that restricts no members. */
const anyMembers: JsonSchemaProps = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

/** `kinds`: those of a definition's group version, or all. `namesOf` returns the names of a kind's group. */
export function createOpenApiContext(
  kinds: readonly Kind[],
  namesOf: (kind: Pick<Kind, "group" | "definedGroup">) => readonly string[],
  descriptions: Describe,
): OpenApiContext {
  const groupVersionKinds = new Map<string, GroupVersionKind[]>();
  const add = (name: string, { kind, version, ...named }: NamedKind): void => {
    const found = groupVersionKinds.get(name) ?? [];
    for (const group of namesOf(named)) found.push({ group, kind, version });
    groupVersionKinds.set(name, found);
  };
  // Kubernetes composes the documents of definitions without its own kinds.
  const builtins = kinds.filter(({ custom }) => custom !== true);
  if (builtins.length > 0) {
    for (const [name, body] of Object.entries(subresourceBodies)) add(name, body);
    for (const kind of coreKinds) add(`meta/v1.${kind}`, { group: "", version: "v1", kind });
  }
  for (const kind of kinds) {
    const { schema, listKind } = kind;
    if (subresourceBodies[schema.name] !== undefined) continue;
    add(schema.name, kind);
    add(`${schema.name.slice(0, schema.name.lastIndexOf(".") + 1)}${listKind}`, { ...kind, kind: listKind });
  }
  const groupVersions = new Map(builtins.map((kind) => [`${kind.group}/${kind.version}`, kind]));
  for (const kind of perGroupVersionKinds) {
    for (const groupVersion of groupVersions.values()) add(`meta/v1.${kind}`, { ...groupVersion, kind });
  }
  const structuralSchemas = new Map<string, JsonSchemaProps>();
  const selectableFields = new Map<string, readonly { readonly fieldPath: string }[]>();
  for (const { custom, schema, structuralSchema, selectableFields: fields } of kinds) {
    if (custom !== true) continue;
    const paths = Object.keys(fields).map((fieldPath) => ({ fieldPath }));
    if (paths.length > 0) selectableFields.set(schema.name, paths);
    structuralSchemas.set(schema.name, structuralSchema ?? anyMembers);
  }
  return {
    descriptions,
    objectMeta,
    structural: ({ name }) => structuralSchemas.get(name),
    markers: ({ name }) => {
      const found = groupVersionKinds.get(name);
      if (found === undefined) return undefined;
      const fields = selectableFields.get(name);
      const selectable = fields === undefined ? {} : { "x-kubernetes-selectable-fields": fields };
      return { "x-kubernetes-group-version-kind": found, ...selectable };
    },
  };
}
