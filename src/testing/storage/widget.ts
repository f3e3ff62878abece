/** A small kind, for tests and benchmarks of the storage package. */
import type { Kind } from "../../api/kind.ts";
import { objectMeta } from "../../api/meta/object-meta.ts";
import { typeMeta } from "../../api/meta/type-meta.ts";
import { int64, object, optional, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";

const widget = object("test/v1.Widget", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  color: optional(2, string),
  size: optional(3, int64),
});
export type Widget = Infer<typeof widget>;

export const widgetKind: Kind<Widget> = {
  group: "test.svc.io",
  version: "v1",
  kind: "Widget",
  listKind: "WidgetList",
  plural: "widgets",
  singular: "widget",
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: ["create", "delete", "get", "list", "update", "watch"],
  subresources: [],
  storageName: "widgets",
  schema: widget,
  columns: [],
  selectableFields: {},
  strategy: {},
};

export function makeWidget(name: string, members: Partial<Widget> = {}): Widget {
  return { metadata: { name, namespace: "default", uid: `uid-${name}` }, ...members };
}
