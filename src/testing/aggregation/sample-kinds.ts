/** The kinds of Kubernetes' sample extension server: `wardle.example.com/v1alpha1`. */
import { ageColumn, nameColumn } from "../../api/columns/columns.ts";
import { allVerbs, type Kind } from "../../api/kind.ts";
import { objectMeta } from "../../api/meta/object-meta.ts";
import { typeMeta } from "../../api/meta/type-meta.ts";
import { list, object, optional, string } from "../../schema/define.ts";

const flunder = object("wardle/v1alpha1.Flunder", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: optional(2, object("wardle/v1alpha1.FlunderSpec", { reference: optional(1, string) })),
  status: optional(3, object("wardle/v1alpha1.FlunderStatus", {})),
});

const fischer = object("wardle/v1alpha1.Fischer", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  disallowedFlunders: optional(2, list(string)),
});

const common = {
  group: "wardle.example.com",
  version: "v1alpha1",
  shortNames: [],
  categories: [],
  verbs: allVerbs,
  subresources: [],
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: {},
} as const;

export const flunderKind: Kind = {
  ...common,
  kind: "Flunder",
  listKind: "FlunderList",
  plural: "flunders",
  singular: "flunder",
  shortNames: ["fl"],
  namespaced: true,
  storageName: "flunders",
  schema: flunder,
};

export const fischerKind: Kind = {
  ...common,
  kind: "Fischer",
  listKind: "FischerList",
  plural: "fischers",
  singular: "fischer",
  namespaced: false,
  storageName: "fischers",
  schema: fischer,
};
