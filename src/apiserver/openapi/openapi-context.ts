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
/** Kinds of the core group only. */
const coreKinds = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];
/** Kinds that every group version has. */
const perGroupVersionKinds = ["DeleteOptions", "WatchEvent"];

/** The schema of a definition that restricts no members. */
const anyMembers: JsonSchemaProps = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

/** `namesOf` returns the names of a group in the document. */
export function createOpenApiContext(
  kinds: readonly Kind[],
  namesOf: (group: string) => readonly string[],
  descriptions: Describe,
): OpenApiContext {
  const groupVersionKinds = new Map<string, readonly GroupVersionKind[]>();
  const add = (name: string, { group, version, kind }: GroupVersionKind): void => {
    const withNames = namesOf(group).map((each) => ({ group: each, kind, version }));
    groupVersionKinds.set(name, [...(groupVersionKinds.get(name) ?? []), ...withNames]);
  };
  for (const [name, body] of Object.entries(subresourceBodies)) add(name, body);
  for (const kind of coreKinds) add(`meta/v1.${kind}`, { group: "", version: "v1", kind });
  for (const { group, version, kind, listKind, schema } of kinds) {
    if (subresourceBodies[schema.name] !== undefined) continue;
    add(schema.name, { group, version, kind });
    add(`${schema.name.slice(0, schema.name.lastIndexOf(".") + 1)}${listKind}`, { group, version, kind: listKind });
  }
  const versions = new Map(kinds.map(({ group, version }) => [`${group}/${version}`, { group, version }]));
  for (const kind of perGroupVersionKinds) {
    for (const groupVersion of versions.values()) add(`meta/v1.${kind}`, { ...groupVersion, kind });
  }
  const structuralSchemas = new Map<string, JsonSchemaProps>();
  for (const { custom, schema, structuralSchema } of kinds) {
    if (custom === true) structuralSchemas.set(schema.name, structuralSchema ?? anyMembers);
  }
  return {
    descriptions,
    objectMeta,
    structural: ({ name }) => structuralSchemas.get(name),
    markers: ({ name }) => {
      const found = groupVersionKinds.get(name);
      return found === undefined ? undefined : { "x-kubernetes-group-version-kind": found };
    },
  };
}
