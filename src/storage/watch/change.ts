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
  /** The last state with the revision of the change, for DELETED. */
  #deleted: EncodedObject<T> | undefined;

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
    if (after) return current.modified;
    if (!before) return undefined;
    this.#deleted ??= previous.withRevision(this.revision);
    return this.#deleted.deleted;
  }

  /** Called when the history drops the change: no watch starts with it any more. */
  release(): void {
    this.previous?.retire();
    this.#deleted?.retire();
  }
}
