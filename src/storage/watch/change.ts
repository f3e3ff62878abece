import type { ApiObject } from "../../api/kind.ts";
import type { Revision } from "../store.ts";
import type { EncodedObject } from "./encoded-object.ts";
import type { Matches, ObjectEvent } from "./watch-event.ts";

/** A change of one object. `previous` is undefined for a create, `current` for a delete. */
export class Change<T extends ApiObject> {
  readonly key: string;
  readonly revision: Revision;
  readonly current: EncodedObject<T> | undefined;
  readonly previous: EncodedObject<T> | undefined;
  /** Bytes of the change, which count against the limit of the history. */
  readonly size: number;
  #modified: ObjectEvent<T> | undefined;
  #deleted: ObjectEvent<T> | undefined;

  constructor(
    revision: Revision,
    previous: EncodedObject<T> | undefined,
    current: EncodedObject<T> | undefined,
    size: number,
  ) {
    const either = current ?? previous;
    if (either === undefined) throw new Error("A change needs a previous or a current object");
    this.key = either.key;
    this.revision = revision;
    this.previous = previous;
    this.current = current;
    this.size = size;
  }

  /** The event for a watcher with this selector; undefined for none. */
  eventFor(matches: Matches<T> | undefined): ObjectEvent<T> | undefined {
    const { previous, current } = this;
    const before = previous !== undefined && (matches === undefined || matches(previous));
    const after = current !== undefined && (matches === undefined || matches(current));
    if (after && !before) return current.added;
    if (after) return this.#modifiedEvent(current);
    return before ? this.#deletedEvent(previous) : undefined;
  }

  #modifiedEvent(item: EncodedObject<T>): ObjectEvent<T> {
    this.#modified ??= { type: "MODIFIED", item, revision: this.revision, size: item.size };
    return this.#modified;
  }

  #deletedEvent(item: EncodedObject<T>): ObjectEvent<T> {
    this.#deleted ??= {
      type: "DELETED",
      item: item.withRevision(this.revision),
      revision: this.revision,
      size: item.size,
    };
    return this.#deleted;
  }
}
