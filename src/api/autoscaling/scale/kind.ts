/** Scale: the common representation of the replica counts of scalable kinds. */
import { ageColumn, integerColumn, nameColumn } from "../../columns/columns.ts";
import { formatLabelSelector } from "../../columns/selector-text.ts";
import type { ApiObject, Kind, Subresource } from "../../kind.ts";
import type { LabelSelector } from "../../meta/label-selector.ts";
import type { ObjectMeta } from "../../meta/object-meta.ts";
import { validateNonNegative } from "../../meta/validation/bounds.ts";
import { type Scale, scale } from "./schema.ts";

/** Served as a subresource only. */
export const scaleKind: Kind<Scale> = {
  group: "autoscaling",
  version: "v1",
  kind: "Scale",
  listKind: "ScaleList",
  plural: "scales",
  singular: "scale",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: [],
  subresources: [],
  storageName: "scales",
  schema: scale,
  columns: [
    { ...nameColumn, format: "" },
    integerColumn("Desired", ({ spec }) => spec?.replicas ?? 0),
    integerColumn("Available", ({ status }) => status?.replicas ?? 0),
    ageColumn,
  ],
  selectableFields: {},
  strategy: { validate: ({ spec }) => validateNonNegative(spec?.replicas, "spec.replicas") },
};

interface Scalable extends ApiObject {
  readonly spec?: { readonly replicas?: number | undefined } | undefined;
  readonly status?: { readonly replicas?: number | undefined } | undefined;
}

/** The `scale` subresource of a kind. `selectorOf` returns the selector of its pods. */
export function scaleSubresource<T extends Scalable>(
  selectorOf: (object: T) => LabelSelector | undefined,
): Subresource<T> {
  return {
    name: "scale",
    kind: "Scale",
    group: "autoscaling",
    version: "v1",
    verbs: ["get", "patch", "update"],
    view: {
      kind: scaleKind,
      toView: (object) => scaleOf(object, selectorOf(object)),
      fromView: (object, { metadata, spec }: Scale) => ({
        ...object,
        metadata: { ...object.metadata, resourceVersion: metadata?.resourceVersion },
        spec: { ...object.spec, replicas: spec?.replicas ?? 0 },
      }),
      managedPath: ["spec", "replicas"],
    },
  };
}

function scaleOf({ metadata = {}, spec, status }: Scalable, selector: LabelSelector | undefined): Scale {
  const text = formatLabelSelector(selector);
  return {
    metadata: scaleMetadata(metadata),
    spec: { replicas: spec?.replicas ?? 0 },
    status: { replicas: status?.replicas ?? 0, selector: text === "<none>" ? "" : text },
  };
}

/** A Scale has the identity of the scaled object, without labels and annotations. */
export function scaleMetadata({ name, namespace, uid, resourceVersion, creationTimestamp }: ObjectMeta): ObjectMeta {
  const members = { name, namespace, uid, resourceVersion, creationTimestamp };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
