/** Kinds of custom resource definitions, reduced to what metadata access needs. */
import type { CustomResourceDefinition } from "../../api/apiextensions/custom-resource-definition/schema.ts";
import { versionForReading } from "../../api/apiextensions/custom-resource-definition/status.ts";
import { allVerbs, type Kind } from "../../api/kind.ts";
import { svcGroup } from "../../api/scheme.ts";
import { bareMetadataKind } from "../../client/metadata-only.ts";

export interface CustomKinds {
  /** The same for all versions. */
  readonly storageName: string;
  /** One for each served version. */
  readonly versions: readonly Kind[];
  /** The version to watch: the stored one needs no conversion. */
  readonly watched: Kind;
}

/** Undefined if no version is served. */
export function toCustomKinds(definition: CustomResourceDefinition): CustomKinds | undefined {
  const { spec, status } = definition;
  const watched = versionForReading(definition);
  if (watched === undefined) return undefined;
  const names = status?.acceptedNames?.plural ? status.acceptedNames : spec.names;
  const storageName = `${spec.group}/${names.plural}`;
  const kindOf = (version: string): Kind =>
    bareMetadataKind({
      group: svcGroup(spec.group),
      version,
      kind: names.kind,
      listKind: names.listKind || `${names.kind}List`,
      plural: names.plural,
      singular: names.singular || names.kind.toLowerCase(),
      shortNames: [],
      categories: [],
      namespaced: spec.scope === "Namespaced",
      verbs: allVerbs,
      subresources: [],
      storageName,
      columns: [],
      selectableFields: {},
      strategy: {},
    });
  const versions = spec.versions.filter(({ served }) => served).map(({ name }) => kindOf(name));
  return { storageName, versions, watched: versions.find(({ version }) => version === watched.name)! };
}

/** Whether two definitions have the same kinds. */
export function isSameCustomKinds(a: CustomKinds, b: CustomKinds): boolean {
  return keyOf(a) === keyOf(b);
}

function keyOf({ storageName, versions, watched }: CustomKinds): string {
  return [storageName, watched.kind, watched.namespaced, watched.version, ...versions.map((k) => k.version)].join(" ");
}
