/** Objects without their managed fields, as an audit policy with `omitManagedFields` records them. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import { dropManagedFields } from "../../api/meta/managed-fields.ts";
import type { ListPage } from "../../registry/list.ts";
import type { CachedObject } from "../../storage/watch/watch-event.ts";
import type { Row } from "./table.ts";
import { encodeObject } from "./type-meta.ts";

export function rowWithoutManagedFields<T extends ApiObject>(kind: Kind<T>, row: Row<T>): Row<T> {
  const object = dropManagedFields(row.object);
  return object === row.object ? row : { object, bytes: encodeObject(kind, object) };
}

/** Each object is read and encoded when the list reaches it: a large list is encoded in slices. */
export function pageWithoutManagedFields<T extends ApiObject>(kind: Kind<T>, page: ListPage<T>): ListPage<T> {
  const items = page.items.map((item): CachedObject<T> => {
    const { key, labels, revision, size } = item;
    const encode = (): Buffer => rowWithoutManagedFields(kind, item).bytes;
    return {
      key,
      labels,
      revision,
      size,
      get object() {
        return dropManagedFields(item.object);
      },
      get bytes() {
        return encode();
      },
      encodeForList: encode,
    };
  });
  return { ...page, items };
}
