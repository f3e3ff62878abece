/** The containers of a pod, of every sort, each with where it stands. */
import { child, index } from "../../../schema/value/field-path.ts";
import type { Container } from "../container/schema.ts";
import type { PodSpec } from "./schema.ts";

export interface ContainerWithPath {
  readonly container: Container;
  readonly list: "initContainers" | "containers" | "ephemeralContainers";
  /** `spec.containers[0]` */
  readonly at: string;
}

/** In the order in which Kubernetes visits them: those that run first come first. */
export function containersWithPaths(spec: PodSpec, path: string): readonly ContainerWithPath[] {
  return (["initContainers", "containers", "ephemeralContainers"] as const).flatMap((list) =>
    (spec[list] ?? []).map((container, i) => ({ container, list, at: index(child(path, list), i) })),
  );
}
