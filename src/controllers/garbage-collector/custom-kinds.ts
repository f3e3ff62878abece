/** The kinds that definitions of custom resources add, as much of them as is needed to read and delete by metadata. */
import type { CustomResourceDefinition } from "../../api/apiextensions/custom-resource-definition/schema.ts";
import { versionForReading } from "../../api/apiextensions/custom-resource-definition/status.ts";
import { allVerbs, type Kind } from "../../api/kind.ts";
import { svcGroup } from "../../api/scheme.ts";
import { bareMetadataKind } from "../../client/metadata-only.ts";

export interface CustomKinds {
  /** All versions share it. */
  readonly storageName: string;
  /** One for each version that is served. */
  readonly versions: readonly Kind[];
  /** The one to watch: what is stored need not be converted. */
  readonly watched: Kind;
}

/** Undefined while nothing of the definition is served. */
export function customKindsOf(definition: CustomResourceDefinition): CustomKinds | undefined {
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

/** Whether two definitions are of the same kinds, as far as they are known here. */
export function isSameCustomKinds(a: CustomKinds, b: CustomKinds): boolean {
  return shape(a) === shape(b);
}

function shape({ storageName, versions, watched }: CustomKinds): string {
  return [storageName, watched.kind, watched.namespaced, watched.version, ...versions.map((k) => k.version)].join(" ");
}
