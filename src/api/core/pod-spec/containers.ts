/** The containers of a pod of all three lists, with their field paths. */
import { child, index } from "../../../schema/value/field-path.ts";
import type { Container } from "../container/schema.ts";
import type { PodSpec } from "./schema.ts";

type ListName = "initContainers" | "containers" | "ephemeralContainers";

export class ContainerWithPath {
  readonly container: Container;
  readonly list: ListName;
  readonly #path: string;
  readonly #index: number;

  constructor(container: Container, list: ListName, path: string, position: number) {
    this.container = container;
    this.list = list;
    this.#path = path;
    this.#index = position;
  }

  /** The field path: `spec.containers[0]`. Formatted when it is read, since most containers have no errors. */
  get at(): string {
    return index(child(this.#path, this.list), this.#index);
  }
}

/** In Kubernetes' order: init containers, containers, ephemeral containers. */
export function* containersWithPaths(spec: PodSpec, path: string): Generator<ContainerWithPath> {
  for (const list of ["initContainers", "containers", "ephemeralContainers"] as const) {
    for (const [i, container] of (spec[list] ?? []).entries()) {
      yield new ContainerWithPath(container, list, path, i);
    }
  }
}
