/** The columns of `kubectl get -o wide` with the containers of the template. */
import { wideColumn } from "../../columns/columns.ts";
import type { PodTemplateSpec } from "../../core/pod-template/schema.ts";
import type { Column } from "../../kind.ts";

type Template<T> = (object: T) => PodTemplateSpec | undefined;

export function containerColumns<T>(templateOf: Template<T>): readonly Column<T>[] {
  const show = (what: "name" | "image") => (object: T) =>
    (templateOf(object)?.spec?.containers ?? []).map((container) => container[what] ?? "").join(",");
  return [wideColumn("Containers", show("name")), wideColumn("Images", show("image"))];
}
