import type { LimitRangeItem } from "./schema.ts";

/** The default limit is `max`; the default request is the limit, or else `min`. */
export function setItemDefaults(item: LimitRangeItem): LimitRangeItem {
  if (item.type !== "Container") return item;
  const limits = { ...item.max, ...item.default };
  const requests = { ...item.min, ...limits, ...item.defaultRequest };
  return {
    ...item,
    ...(Object.keys(limits).length === 0 ? {} : { default: limits }),
    ...(Object.keys(requests).length === 0 ? {} : { defaultRequest: requests }),
  };
}
