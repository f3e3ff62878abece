/** The error of a list with objects that cannot be read, with the gate AllowUnsafeMalformedObjectDeletion. */
import type { ApiObject } from "../../api/kind.ts";
import { type StatusCause, StatusError } from "../../api/status.ts";
import { describeUnreadable, isUnreadable } from "../../storage/object-store.ts";
import { prefixRange, type Range, type Revision } from "../../storage/store.ts";
import type { Registry } from "../registry.ts";

const CAUSES_MAX = 100;

/** Reads all objects below the prefix, and names those that cannot be read. */
export async function createUnreadableListError<T extends ApiObject>(
  registry: Registry<T>,
  prefix: string,
  revision: Revision,
): Promise<StatusError> {
  const range = prefixRange(prefix);
  const causes: StatusCause[] = [];
  for (let { from } = range; ; ) {
    const failure = await findUnreadable(registry, { ...range, from }, revision);
    if (failure === undefined) break;
    if (causes.length === CAUSES_MAX) {
      causes.push({ reason: "FieldValueTooMany", message: "too many errors, the list is truncated" });
      break;
    }
    const { key } = failure.current;
    const { message } = describeUnreadable(key, failure);
    causes.push({ reason: "UnexpectedServerResponse", message, field: key });
    from = `${key}\0`;
  }
  const { group, plural } = registry.kind;
  const resource = group === "" ? plural : `${plural}.${group}`;
  return new StatusError(500, "StorageReadError", `failed to read one or more ${resource} from the storage`, {
    details: { name: "list", ...(group === "" ? {} : { group }), kind: plural, causes },
  });
}

async function findUnreadable<T extends ApiObject>(registry: Registry<T>, range: Range, revision: Revision) {
  try {
    for await (const { items } of registry.deps.store.scan(range, { revision })) {
      for (const item of items) registry.objects.decode(item);
    }
    return undefined;
  } catch (error) {
    if (isUnreadable(error)) return error;
    throw error;
  }
}
