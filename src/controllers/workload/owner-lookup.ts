/** Finds the owners of one kind that an object belongs to. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { LabelSelector } from "../../api/meta/label-selector.ts";
import { matchesLabels, requirementsOf } from "../../api/meta/selectors/selector.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { controllerOf } from "./object-keys.ts";

export class OwnerLookup<T extends ApiObject> {
  readonly #kind: Kind<T>;
  readonly #owners: Informer<T>;
  readonly #selectorOf: (owner: T) => LabelSelector | undefined;

  constructor(kind: Kind<T>, owners: Informer<T>, selectorOf: (owner: T) => LabelSelector | undefined) {
    this.#kind = kind;
    this.#owners = owners;
    this.#selectorOf = selectorOf;
  }

  /** The controller of the object; undefined if it is of another kind or gone. */
  controllerOf(object: ApiObject): T | undefined {
    const controller = controllerOf(object);
    if (controller?.kind !== this.#kind.kind) return undefined;
    const owner = this.#owners.get(controller.name, object.metadata?.namespace);
    return owner?.metadata?.uid === controller.uid ? owner : undefined;
  }

  /** Owners that may adopt the object. An empty selector selects nothing. */
  selecting(object: ApiObject): readonly T[] {
    const { namespace, labels } = object.metadata ?? {};
    return [...this.#owners.list()].filter((owner) => {
      if (owner.metadata?.namespace !== namespace) return false;
      const requirements = requirementsOf(this.#selectorOf(owner) ?? {});
      return requirements.length > 0 && matchesLabels(requirements, labels);
    });
  }

  /**
   * The owners that a change of the object affects: its controller, the controller that it had, or without one those
   * that may adopt it.
   */
  affectedBy(object: ApiObject, before: ApiObject | undefined): readonly T[] {
    const previous = before === undefined ? undefined : this.controllerOf(before);
    const current =
      controllerOf(object) === undefined ? this.selecting(object) : [this.controllerOf(object)].flatMap((o) => o ?? []);
    return previous === undefined || current.includes(previous) ? current : [previous, ...current];
  }
}
