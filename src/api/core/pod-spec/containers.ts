/** The containers of a pod of all three lists, with their field paths. */
import { child, index } from "../../../schema/value/field-path.ts";
import type { Container } from "../container/schema.ts";
import type { PodSpec } from "./schema.ts";

export interface ContainerWithPath {
  readonly container: Container;
  readonly list: "initContainers" | "containers" | "ephemeralContainers";
  /** The field path: `spec.containers[0]`. */
  readonly at: string;
}

/** In Kubernetes' order: init containers, containers, ephemeral containers. */
export function containersWithPaths(spec: PodSpec, path: string): readonly ContainerWithPath[] {
  return (["initContainers", "containers", "ephemeralContainers"] as const).flatMap((list) =>
    (spec[list] ?? []).map((container, i) => ({ container, list, at: index(child(path, list), i) })),
  );
}
